// What the journal of a run's earlier lives says of each group, as of a checkpoint: what a resumed
// exchange begins with. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/controller/run_record.h"
#include "runtime/base/ids.h"
#include "scheduler/fleet/fixed_lag.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::actors {

struct RestoredGroup {
  GroupId group;
  std::int64_t position = 0;                          // of its prompt
  std::optional<scheduler::Slot> slot;                // under fixed_lag
  std::optional<StepId> trained_at;                   // below the checkpoint; otherwise
  std::optional<scheduler::DiscardReason> discarded;  // otherwise it is live
};

class GroupHistory {
 public:
  // Rows of other kinds than these are ignored.
  static constexpr const char* kKinds[] = {"admitted", "trained", "discarded", "evaluated"};

  void take(const JournalEvent& event);

  // In the order of admission. A step at or above the checkpoint is as if it had not been trained,
  // and the end of an earlier life discards nothing.
  std::vector<RestoredGroup> at(StepId checkpoint) const;
  // Means of the evaluations of versions up to the checkpoint, by kind; the newest one as "last".
  std::map<std::string, double> evaluations(StepId checkpoint) const;

 private:
  struct Evaluated {
    std::string kind;
    std::int64_t version = 0;
    double mean = 0;
  };
  std::map<GroupId, RestoredGroup> groups_;
  std::vector<Evaluated> evaluated_;
};

}  // namespace tandem::actors
