// Events arrive in the order of the journal, so the last word on a group wins. The end of an
// incarnation discards all live groups (LiveDiscarded); a resumed run generates them again, so that
// this event is no part of their story.
#include "actors/exchange/group_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tandem::exchange {

void GroupHistory::take(const JournalEvent& event) {
  std::visit([this](const auto& what) { on(what); }, event);
}

void GroupHistory::admit(GroupId group, std::int64_t position,
                         const std::optional<scheduler::Slot>& slot) {
  groups_[group] = {.group = group, .position = position, .slot = slot};
}

void GroupHistory::on(const GroupAdmitted& event) {
  admit(event.group, event.position, event.slot);
}

// An incarnation that began from an older checkpoint admits groups anew that were trained since.
void GroupHistory::on(const RunResumed& event) {
  for (const ResumedGroup& group : event.groups)
    if (!group.discarded) admit(group.group, group.position, group.slot);
}

void GroupHistory::on(const GroupGenerated& event) {
  for (const messages::TrajectoryHeader& trajectory : event.header.trajectories)
    generated_ += static_cast<std::uint64_t>(trajectory.completion_tokens);
}

void GroupHistory::on(const GroupScored& event) { rewards_[event.group] = event.rewards; }

void GroupHistory::on(const StepTrained& event) {
  if (event.groups.empty()) ++steps_repeated_;
  double reward = 0;
  std::size_t trajectories = 0;
  for (const GroupId group : event.groups) {
    ++trainings_;
    groups_[group].group = group;
    groups_[group].trained_at = event.step;
    const auto scored = rewards_.extract(group);
    if (!scored) continue;
    for (const float one : scored.mapped()) reward += one;
    trajectories += scored.mapped().size();
  }
  if (trajectories > 0) reward_means_[event.step] = reward / static_cast<double>(trajectories);
}

void GroupHistory::on(const GroupDiscarded& event) {
  groups_[event.group].group = event.group;
  groups_[event.group].discarded = event.reason;
  rewards_.erase(event.group);
}

void GroupHistory::on(const EvaluationEnded& event) { evaluated_.push_back(event); }

void GroupHistory::on(const TotalsNoted& event) {
  trained_[event.step] = event.totals.trained;
  statistics_.work = event.totals.work;
  generated_ = 0;
  if (event.totals.publish_seconds) statistics_.add_publish_seconds(*event.totals.publish_seconds);
}

std::vector<RestoredGroup> GroupHistory::at(StepId checkpoint) const {
  std::vector<RestoredGroup> restored;
  for (const auto& [id, group] : groups_) {
    restored.push_back(group);
    if (group.trained_at && *group.trained_at >= checkpoint) restored.back().trained_at.reset();
  }
  return restored;
}

std::int64_t GroupHistory::retrained(StepId checkpoint, std::int64_t groups_per_step) const {
  const auto below = std::count_if(groups_.begin(), groups_.end(), [&](const auto& group) {
    return group.second.trained_at && *group.second.trained_at < checkpoint;
  });
  return trainings_ - below + steps_repeated_ * groups_per_step;
}

void GroupHistory::for_evaluations(StepId checkpoint, std::int64_t steps_total,
                                   const auto& take) const {
  for (const EvaluationEnded& one : evaluated_) {
    if (one.version.value > checkpoint.value) continue;
    // A run whose total steps were raised had its last evaluation at the earlier end.
    const bool of_earlier_end =
        one.kind == EvaluationKind::kFinal && one.version.value < steps_total;
    take(of_earlier_end ? EvaluationKind::kPeriodic : one.kind, one);
  }
}

RunStatistics GroupHistory::statistics(StepId checkpoint, std::int64_t steps_total,
                                       const BestBy& best) const {
  RunStatistics statistics = statistics_;
  std::erase_if(statistics.lineages, [&](StepId step) { return step >= checkpoint; });
  if (const auto at = trained_.find(checkpoint); at != trained_.end())
    statistics.trained = at->second;
  if (const auto after = digests_.upper_bound(checkpoint); after != digests_.begin())
    statistics.weights_sha256 = std::prev(after)->second;
  const auto mean = reward_means_.find(StepId{checkpoint.value - 1});
  if (mean != reward_means_.end()) statistics.batch.rewards.mean = mean->second;
  for_evaluations(checkpoint, steps_total, [&](EvaluationKind kind, const EvaluationEnded& one) {
    statistics.add_evaluation({kind, one.version, figures_of(one)}, best);
  });
  return statistics;
}

RunResumed GroupHistory::resumed(StepId checkpoint, const scheduler::Budget& budget,
                                 bool fixed_lag) const {
  RunResumed event{.checkpoint = checkpoint, .next_group = GroupId{1}};
  event.retrained = retrained(checkpoint, budget.groups_per_step);
  event.discarded.assign(scheduler::kDiscardReasons, 0);
  for (const RestoredGroup& group : at(checkpoint)) {
    ++event.issued;
    event.next_group = GroupId{group.group.value + 1};
    event.next_position = std::max(event.next_position, group.position + 1);
    if (group.trained_at) {
      ++event.trained;
      continue;
    }
    if (group.discarded) ++event.discarded[static_cast<std::size_t>(*group.discarded)];
    const bool slot_ahead = fixed_lag && group.slot && group.slot->step >= checkpoint;
    if (!group.discarded || slot_ahead)
      event.groups.push_back({group.group, group.position, group.slot, group.discarded});
  }
  std::set<EvaluationKind> kinds;
  for_evaluations(checkpoint, budget.steps_total,
                  [&](EvaluationKind kind, const EvaluationEnded&) { kinds.insert(kind); });
  event.evaluated.assign(kinds.begin(), kinds.end());
  return event;
}

}  // namespace tandem::exchange
