// The story of each group, and the figures of the run, that the journal of a run's earlier
// incarnations tells as of a checkpoint: what a resumed run begins with. Pure.
//
// The journal may hold decisions beyond the checkpoint, made by an incarnation that ended before
// the next one. These do not count: such a step is trained again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/file_limits.h"
#include "actors/exchange/run_statistics.h"
#include "actors/exchange/state/journal_event.h"
#include "runtime/base/ids.h"
#include "scheduler/fleet/fixed_lag.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::exchange {

struct RestoredGroup {
  GroupId group;
  std::int64_t position = 0;                          // the prompt's place in the shuffled sequence
  std::optional<scheduler::Slot> slot;                // under fixed_lag
  std::optional<StepId> trained_at;                   // set: trained below the checkpoint
  std::optional<scheduler::DiscardReason> discarded;  // neither set: the group is live
};

// Give take() all events of the journal in their order, then ask for the state at a checkpoint.
class GroupHistory {
 public:
  void take(const JournalEvent& event);

  // The groups in the order of admission. A step at or above the checkpoint counts as not trained,
  // and a discard by the end of an earlier incarnation does not count either.
  std::vector<RestoredGroup> at(StepId checkpoint) const;
  // The event by which a run goes on from a checkpoint.
  RunResumed resumed(StepId checkpoint, const scheduler::Budget& budget, bool fixed_lag) const;
  // The totals and evaluations of the run so far; those of training and evaluation, and the mean
  // reward of the newest step, as of the checkpoint. Only an evaluation of version `steps_total` is
  // the final one: the final evaluation of an earlier, shorter end counts as a periodic one. The
  // best of them is that by `best`.
  RunStatistics statistics(StepId checkpoint, std::int64_t steps_total,
                           const BestBy& best = {}) const;
  // Tokens of groups that were generated after the newest totals.
  std::uint64_t generated_since_noted() const { return generated_; }
  const LimitsReached& limits_reached() const { return limits_reached_; }

 private:
  void on(const GroupAdmitted& event);
  void on(const GroupGenerated& event);
  void on(const GroupScored& event);
  void on(const StepTrained& event);
  void on(const GroupDiscarded& event);
  void on(const RunResumed& event);
  void on(const EvaluationEnded& event);
  void on(const TotalsNoted& event);
  void on(const CheckpointKept& event) { digests_[event.step] = event.weights_sha256; }
  void on(const LineageBegan& event) { statistics_.lineages.push_back(event.step); }
  void on(const SamplesFull&) { limits_reached_.samples = true; }
  void on(const MetricsThinned&) { limits_reached_.metrics = true; }
  template <class Other>
  void on(const Other&) {}  // no part of a group's story

  void admit(GroupId group, std::int64_t position, const std::optional<scheduler::Slot>& slot);
  // How many trainings of groups are not among those that count as of the checkpoint: a learner
  // that had restarted repeated them, or they were lost with the end of an incarnation.
  std::int64_t retrained(StepId checkpoint, std::int64_t groups_per_step) const;
  // Calls `take(kind, evaluation)` for those that count as of the checkpoint, oldest first.
  void for_evaluations(StepId checkpoint, std::int64_t steps_total, const auto& take) const;

  std::map<GroupId, RestoredGroup> groups_;
  std::vector<EvaluationEnded> evaluated_;
  LimitsReached limits_reached_;
  std::uint64_t generated_ = 0;
  std::map<StepId, std::string> digests_;  // of the weights, by checkpoint
  std::int64_t trainings_ = 0, steps_repeated_ = 0;
  std::map<StepId, TrainedTotals> trained_;        // by the step that they were noted at
  std::map<GroupId, std::vector<float>> rewards_;  // for scored groups, until they are trained
  std::map<StepId, double> reward_means_;          // by the step that was trained
  RunStatistics statistics_;                       // without what hangs on the checkpoint
};

}  // namespace tandem::exchange
