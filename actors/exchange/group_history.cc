// Events arrive in the order of the journal, so the last word on a group wins. The end of an
// incarnation discards all live groups (LiveDiscarded); a resumed run generates them again, so that
// this event is no part of their story.
#include "actors/exchange/group_history.h"

#include <algorithm>
#include <utility>

namespace tandem::exchange {

void GroupHistory::take(const JournalEvent& event) {
  figures_.take(event);
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

void GroupHistory::on(const StepTrained& event) {
  if (event.groups.empty()) ++steps_repeated_;
  for (const GroupId group : event.groups) {
    ++trainings_;
    groups_[group].group = group;
    groups_[group].trained_at = event.step;
  }
}

void GroupHistory::on(const GroupDiscarded& event) {
  groups_[event.group].group = event.group;
  groups_[event.group].discarded = event.reason;
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
  event.evaluated = figures_.evaluated(checkpoint, budget.steps_total);
  return event;
}

}  // namespace tandem::exchange
