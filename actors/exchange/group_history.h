// The story of each group that the journal of a run's earlier incarnations tells as of a
// checkpoint, and the figures of the run: what a resumed run begins with. Pure.
//
// The journal may hold decisions beyond the checkpoint, made by an incarnation that ended before
// the next one. These do not count: such a step is trained again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "actors/exchange/figure_history.h"
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
  const FigureHistory& figures() const { return figures_; }

 private:
  void on(const GroupAdmitted& event);
  void on(const StepTrained& event);
  void on(const GroupDiscarded& event);
  void on(const RunResumed& event);
  template <class Other>
  void on(const Other&) {}  // no part of a group's story

  void admit(GroupId group, std::int64_t position, const std::optional<scheduler::Slot>& slot);
  // How many trainings of groups are not among those that count as of the checkpoint: a learner
  // that had restarted repeated them, or they were lost with the end of an incarnation.
  std::int64_t retrained(StepId checkpoint, std::int64_t groups_per_step) const;

  std::map<GroupId, RestoredGroup> groups_;
  std::int64_t trainings_ = 0, steps_repeated_ = 0;
  FigureHistory figures_;
};

}  // namespace tandem::exchange
