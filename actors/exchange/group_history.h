// What the journal of a run's earlier lives says of each group, and of the run's figures, as of a
// checkpoint: what a resumed exchange begins with. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/run_record.h"
#include "actors/exchange/run_statistics.h"
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
  static constexpr const char* kKinds[] = {"admitted",  "trained",   "retrained",
                                           "discarded", "evaluated", "totals"};

  void take(const JournalEvent& event);

  // In the order of admission. A step at or above the checkpoint is as if it had not been trained,
  // and the end of an earlier life discards nothing.
  std::vector<RestoredGroup> at(StepId checkpoint) const;
  // Group trainings that `trained` as of the checkpoint does not count: repeated by a learner that
  // had restarted, or lost with the end of a life.
  std::int64_t retrained(StepId checkpoint, std::int64_t groups_per_step) const;
  // The totals and evaluations of the run so far. Of what was trained, and evaluated, as of the
  // checkpoint. The final evaluation is that of version `steps_total` alone: one of an earlier end
  // counts as a periodic one.
  RunStatistics statistics(StepId checkpoint, std::int64_t steps_total) const;

 private:
  struct Evaluated {
    std::string kind;
    std::int64_t version = 0;
    EvaluationFigures figures;
  };
  void take_evaluated(const JournalEvent& event);
  void take_totals(const JournalEvent& event);

  std::map<GroupId, RestoredGroup> groups_;
  std::vector<Evaluated> evaluated_;
  std::int64_t trainings_ = 0, steps_repeated_ = 0;
  std::map<StepId, TrainedTotals> trained_;  // by the step that they were noted at
  RunStatistics statistics_;                 // without what hangs on the checkpoint
};

}  // namespace tandem::actors
