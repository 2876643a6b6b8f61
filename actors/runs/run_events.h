// Reads a run's own journal without replaying it: its milestones as events, and the incarnations
// that came up. The journal is opened for reading only. merged() joins these events with those that
// controllers announced (cluster_journal.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/runs/cluster_event.h"
#include "runtime/base/result.h"

namespace tandem::runs {

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

}  // namespace tandem::runs
