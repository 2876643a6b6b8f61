// Events arrive in the order of the journal, so the last word on a group wins. The end of an
// incarnation discards all live groups (LiveDiscarded); a resumed run generates them again, so that
// this event is no part of their story.
#include "actors/exchange/group_history.h"

#include <algorithm>
#include <utility>

namespace tandem::exchange {

GroupHistory::GroupHistory(const HistoryImage& image)
    : from_(image.from),
      checkpoints_(image.checkpoints),
      summed_(image.summed),
      trainings_(image.trainings),
      steps_repeated_(image.steps_repeated),
      figures_(image.figures) {
  for (const RestoredGroup& group : image.groups) groups_[group.group] = group;
}

HistoryImage GroupHistory::image() const {
  HistoryImage image{.from = from_,
                     .checkpoints = checkpoints_,
                     .summed = summed_,
                     .groups = {},
                     .trainings = trainings_,
                     .steps_repeated = steps_repeated_,
                     .figures = figures_.image()};
  for (const auto& [id, group] : groups_) image.groups.push_back(group);
  return image;
}

// A group that was discarded is generated again only where its slot, under fixed_lag, is ahead.
void GroupHistory::sum_up(std::size_t kept, StepId at_most, const BestBy& best) {
  if (checkpoints_.size() < kept) return;
  from_ = std::max(from_, std::min(checkpoints_[checkpoints_.size() - kept], at_most));
  std::erase_if(checkpoints_, [this](StepId step) { return step < from_; });
  figures_.sum_up_below(from_, best);
  summed_.discarded.resize(scheduler::kDiscardReasons);
  std::erase_if(groups_, [this](const auto& one) {
    const RestoredGroup& group = one.second;
    const bool slot_ahead = group.slot && group.slot->step >= from_;
    const bool over = group.trained_at ? *group.trained_at < from_ : group.discarded && !slot_ahead;
    if (!over) return false;
    ++summed_.issued;
    if (group.trained_at)
      ++summed_.trained;
    else
      ++summed_.discarded[static_cast<std::size_t>(*group.discarded)];
    summed_.next_group = std::max(summed_.next_group, GroupId{group.group.value + 1});
    summed_.next_position = std::max(summed_.next_position, group.position + 1);
    return true;
  });
}

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
  std::erase_if(checkpoints_, [&](StepId step) { return step > event.checkpoint; });
}

void GroupHistory::on(const CheckpointKept& event) {
  std::erase_if(checkpoints_, [&](StepId step) { return step >= event.step; });
  checkpoints_.push_back(event.step);
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

std::int64_t GroupHistory::trained(StepId checkpoint) const {
  return summed_.trained + std::count_if(groups_.begin(), groups_.end(), [&](const auto& group) {
           return group.second.trained_at && *group.second.trained_at < checkpoint;
         });
}

std::int64_t GroupHistory::retrained(StepId checkpoint, std::int64_t groups_per_step) const {
  return trainings_ - trained(checkpoint) + steps_repeated_ * groups_per_step;
}

RunResumed GroupHistory::resumed(StepId checkpoint, const scheduler::Budget& budget,
                                 bool fixed_lag) const {
  RunResumed event{.checkpoint = checkpoint,
                   .issued = summed_.issued,
                   .trained = summed_.trained,
                   .retrained = retrained(checkpoint, budget.groups_per_step),
                   .discarded = summed_.discarded,
                   .next_group = std::max(GroupId{1}, summed_.next_group),
                   .next_position = summed_.next_position};
  event.discarded.resize(scheduler::kDiscardReasons);
  for (const RestoredGroup& group : at(checkpoint)) {
    ++event.issued;
    event.next_group = std::max(event.next_group, GroupId{group.group.value + 1});
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
