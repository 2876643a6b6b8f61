// The rows of a trace: a process for each pool, a thread for each actor, and further threads, its
// lanes, for things of one actor that overlap. A row is named by metadata when it is first used.
//
//   TL-2  A lane has one owner at a time, so that spans of a lane never overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/timeline/trace_window.h"

namespace tandem::timeline {

// The pool that a row belongs to: a role, such as "rollout", or one of these.
using TracePool = std::string;
inline const TracePool kRunPool = "run", kGroupsPool = "groups";
inline constexpr std::int64_t kGroupsProcess = 99;

// Lanes of one thing. A lease beyond has no span of its own: its group's trip shows it.
inline constexpr std::size_t kLanesMax = 256;

// A lane that somebody has.
struct TraceLane {
  TraceRow row;
  std::size_t owner = 0, lane = 0;
};

class TraceRows {
 public:
  explicit TraceRows(TraceWindow& window) : window_(window) {}

  // The pool's process, which has its name from then on.
  std::int64_t process(const TracePool& pool);
  // The row of this name: "phases" of the run, or an actor such as "rollout/0".
  TraceRow row(const TracePool& pool, const std::string& name);
  // The first lane of `name` that nobody has; nullopt where kLanesMax are taken.
  std::optional<TraceLane> take(const TracePool& pool, const std::string& name);
  void give_back(const TraceLane& lane);

 private:
  struct Named {
    TracePool pool;
    std::string name;
    std::int64_t order = 0;
    TraceRow row = {};
    std::vector<TraceRow> lanes = {};
    std::vector<bool> taken = {};
  };
  std::size_t find(const TracePool& pool, const std::string& name);
  void name(TraceRow row, const std::string& kind, const std::string& shown, std::int64_t order);
  TraceRow make(const Named& named, const std::string& shown, std::int64_t order);

  TraceWindow& window_;
  std::map<std::pair<TracePool, std::string>, std::size_t> by_name_;
  std::vector<Named> named_;
  std::map<TracePool, std::int64_t> processes_;
  std::int64_t threads_ = kGroupsProcess;  // the number of a process would be its main thread
};

// "rollout/0" of "arithmetic-grpo-1/rollout/0".
std::string short_name(const std::string& actor);
// "rollout" of "rollout/0".
TracePool pool_of(const std::string& short_name);

}  // namespace tandem::timeline
