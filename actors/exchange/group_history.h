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
TANDEM_WIRE(RestoredGroup, group, position, slot, trained_at, discarded)

// Groups that are counted and no longer known one by one. GH-1: no checkpoint that may still be
// asked for changes what became of one of them.
struct SummedGroups {
  std::int64_t issued = 0, trained = 0;
  std::vector<std::int64_t> discarded;  // by DiscardReason; empty: none
  GroupId next_group;                   // above all of them
  std::int64_t next_position = 0;       // likewise
};
TANDEM_WIRE(SummedGroups, issued, trained, discarded, next_group, next_position)

// It lies in journal.sqlite, where nothing else tells the same: a change of its fields, or of
// FigureImage's, is one of kJournalSchema.
struct HistoryImage {
  StepId from;
  std::vector<StepId> checkpoints;
  SummedGroups summed;
  std::vector<RestoredGroup> groups;
  std::int64_t trainings = 0, steps_repeated = 0;
  FigureImage figures;
};
TANDEM_WIRE(HistoryImage, from, checkpoints, summed, groups, trainings, steps_repeated, figures)

// Give take() all events of the journal in their order, or those after an image, then ask for the
// state at a checkpoint.
class GroupHistory {
 public:
  GroupHistory() = default;
  explicit GroupHistory(const HistoryImage& image);

  void take(const JournalEvent& event);
  HistoryImage image() const;
  // Sums up the groups that the `kept` newest checkpoints do not need, where there are so many, and
  // `at_most` not either: an event that has not been taken yet may go back to that one. Checkpoints
  // before them are not asked for any more, as from() says. Of many evaluations the best one by
  // `best` and the newest stay.
  void sum_up(std::size_t kept, StepId at_most, const BestBy& best = {});
  // The first checkpoint whose groups are all known.
  StepId from() const { return from_; }

  // The groups that are known one by one, in the order of admission. A step at or above the
  // checkpoint counts as not trained, and a discard by the end of an earlier incarnation does not
  // count either.
  std::vector<RestoredGroup> at(StepId checkpoint) const;
  // How many groups are trained below the checkpoint.
  std::int64_t trained(StepId checkpoint) const;
  // The event by which a run goes on from a checkpoint.
  RunResumed resumed(StepId checkpoint, const scheduler::Budget& budget, bool fixed_lag) const;
  const FigureHistory& figures() const { return figures_; }

 private:
  void on(const GroupAdmitted& event);
  void on(const StepTrained& event);
  void on(const GroupDiscarded& event);
  void on(const RunResumed& event);
  void on(const CheckpointKept& event);
  template <class Other>
  void on(const Other&) {}  // no part of a group's story

  void admit(GroupId group, std::int64_t position, const std::optional<scheduler::Slot>& slot);
  // How many trainings of groups are not among those that count as of the checkpoint: a learner
  // that had restarted repeated them, or they were lost with the end of an incarnation.
  std::int64_t retrained(StepId checkpoint, std::int64_t groups_per_step) const;

  StepId from_{0};
  // Those that were kept from from_ on, without those that the run has left behind.
  std::vector<StepId> checkpoints_;
  SummedGroups summed_;
  std::map<GroupId, RestoredGroup> groups_;
  std::int64_t trainings_ = 0, steps_repeated_ = 0;
  FigureHistory figures_;
};

}  // namespace tandem::exchange
