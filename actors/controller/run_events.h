// Events of runs, also of those that another controller, or `tandem run`, has run: read from
// TANDEM_HOME/controller.sqlite and from a run's own journal, which nobody writes to here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "runtime/base/result.h"

namespace tandem::actors {

inline constexpr std::size_t kEventsDefault = 10'000, kEventsMax = 100'000;

struct EventQuery {
  std::optional<std::int64_t> since;   // only those with a higher number
  std::size_t limit = kEventsDefault;  // the newest; with `since`, the first after it
};

// Whether an event is about the job or one of its actors: "arith-1" is not "arith-12".
bool is_of_job(const ClusterEvent& event, const std::string& job);

// Those that all controllers of this home have announced about a job, oldest first; none where the
// home has no journal.
Result<std::vector<ClusterEvent>> kept_events(const std::filesystem::path& home,
                                              const std::string& job, const EventQuery& query);
// The milestones in a run's own journal (steps trained and groups left out), of kind "run"; the
// numbers are the journal's. Looks at the journal's last kJournalRowsMax rows.
Result<std::vector<ClusterEvent>> journal_events(const std::filesystem::path& run_dir,
                                                 const std::string& id, const EventQuery& query);
// Who held groups in those rows: incarnations by actor ("rollout/0").
std::map<std::string, std::set<std::uint64_t>> journal_holders(
    const std::filesystem::path& run_dir);
inline constexpr std::int64_t kJournalRowsMax = 200'000;

// Both, by time, each event once; then as many as the query asks for.
std::vector<ClusterEvent> merged(std::vector<ClusterEvent> a, std::vector<ClusterEvent> b,
                                 const EventQuery& query);

}  // namespace tandem::actors
