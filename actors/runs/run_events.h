// Events of runs, also of those that another controller, or `tandem run`, has run. They are read
// from TANDEM_HOME/controller.sqlite and from a run's own journal; both are opened for reading
// only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/runs/cluster_event.h"
#include "runtime/base/result.h"

namespace tandem::actors {

// Has a row where the table `events` of a controller's journal has the column `level`.
inline constexpr const char* kEventLevelColumn =
    "SELECT 1 FROM pragma_table_info('events') WHERE name = 'level'";

inline constexpr std::size_t kEventsDefault = 10'000, kEventsMax = 100'000;

struct EventQuery {
  std::optional<std::int64_t> since;   // only those with a higher number
  std::size_t limit = kEventsDefault;  // so many of the newest; with `since`, of the first after it
};

// Whether an event is about the job or one of its actors. "arith-1" is not a part of "arith-12".
bool is_of_job(const ClusterEvent& event, const std::string& job);

// The events about a job that all controllers of this home have announced, oldest first; none where
// the home has no journal.
Result<std::vector<ClusterEvent>> kept_events(const std::filesystem::path& home,
                                              const std::string& job, const EventQuery& query);
// The milestones in a run's own journal, as events of kind "run"; their numbers are the journal's.
// Rows about single groups and steps are left out.
Result<std::vector<ClusterEvent>> journal_events(const std::filesystem::path& run_dir,
                                                 const std::string& id, const EventQuery& query);
// The incarnations that came up in the last kJournalRowsMax rows, by actor ("rollout/0").
std::map<std::string, std::set<std::uint64_t>> journal_holders(
    const std::filesystem::path& run_dir);
inline constexpr std::int64_t kJournalRowsMax = 200'000;

// The events of both lists by time, each once; as many of them as the query asks for.
std::vector<ClusterEvent> merged(std::vector<ClusterEvent> a, std::vector<ClusterEvent> b,
                                 const EventQuery& query);

}  // namespace tandem::actors
