// The journal of a run that nobody ran: groups are admitted, discarded and trained, checkpoints are
// kept, and now and then the run dies and goes on from one of those.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "actors/exchange/group_history.h"
#include "runtime/base/rng.h"

namespace tandem::exchange {

class RandomRun {
 public:
  // `kept` checkpoints are there at most.
  RandomRun(std::uint64_t seed, bool fixed_lag, std::size_t kept = 2)
      : rng_(seed), fixed_lag_(fixed_lag), kept_(kept) {
    record(RunBegan{.budget = budget_, .fixed_lag = fixed_lag_});
  }

  // What the next step, or the death before it, adds to the journal.
  std::vector<JournalEvent> next() {
    if (rng_.below(12) == 0) go_on();
    train();
    if (step_ % 4 == 0) {
      record(CheckpointKept{.step = StepId{step_}, .weights_sha256 = std::to_string(rng_.next())});
      std::erase_if(checkpoints_, [this](StepId kept) { return kept.value >= step_; });
      checkpoints_.push_back(StepId{step_});
      if (checkpoints_.size() > kept_) checkpoints_.erase(checkpoints_.begin());
    }
    return std::exchange(events_, {});
  }

  // Goes on from none below this one.
  void not_before(StepId checkpoint) {
    std::erase_if(checkpoints_, [&](StepId kept) { return kept < checkpoint; });
  }
  const GroupHistory& whole() const { return whole_; }
  const scheduler::Budget& budget() const { return budget_; }
  bool fixed_lag() const { return fixed_lag_; }
  // Those from which it may go on.
  const std::vector<StepId>& checkpoints() const { return checkpoints_; }

 private:
  template <class Event>
  void record(Event event) {
    events_.emplace_back(std::move(event));
    whole_.take(events_.back());
  }

  void admit(std::int64_t step, std::int32_t index, std::int32_t attempt) {
    RestoredGroup group{.group = GroupId{next_group_++}, .position = next_position_++};
    if (fixed_lag_) group.slot = scheduler::Slot{StepId{step}, index, attempt};
    record(GroupAdmitted{group.group, group.position, group.slot});
    live_.push_back(group);
  }

  // Groups of this step and of the next one are admitted, and some discarded; the batch is trained.
  void train() {
    const std::int64_t batch = budget_.groups_per_step;
    for (std::int64_t step = step_; step <= step_ + 1; ++step)
      for (std::int64_t i = 0; i < batch; ++i) {
        const bool there = fixed_lag_
                               ? std::ranges::any_of(live_,
                                                     [&](const RestoredGroup& group) {
                                                       return group.slot->step.value == step &&
                                                              group.slot->index == i;
                                                     })
                               : std::ssize(live_) >= (step - step_ + 1) * batch;
        if (!there) admit(step, static_cast<std::int32_t>(i), 0);
      }
    while (rng_.below(3) == 0) {
      const std::size_t at = rng_.below(live_.size());
      const RestoredGroup gone = live_[at];
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
      record(GroupDiscarded{gone.group, static_cast<scheduler::DiscardReason>(rng_.below(3))});
      const scheduler::Slot slot = gone.slot.value_or(scheduler::Slot{});
      admit(slot.step.value, slot.index, slot.attempt + 1);
    }
    StepTrained trained{.step = StepId{step_}};
    for (std::size_t i = 0; i < live_.size() && std::ssize(trained.groups) < batch;) {
      if (fixed_lag_ && live_[i].slot->step.value != step_) {
        ++i;
        continue;
      }
      record(GroupScored{.group = live_[i].group, .rewards = {static_cast<float>(rng_.unit())}});
      trained.groups.push_back(live_[i].group);
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    record(std::move(trained));
    ++step_;
    RunTotals totals;
    totals.trained.tokens = rng_.below(1000);
    record(TotalsNoted{StepId{step_}, totals});
  }

  void go_on() {
    if (checkpoints_.empty()) return;
    const StepId checkpoint = checkpoints_[rng_.below(checkpoints_.size())];
    std::vector<GroupId> ended;
    for (const RestoredGroup& group : live_) ended.push_back(group.group);
    if (rng_.below(2) == 0)
      record(LiveDiscarded{scheduler::DiscardReason::kCancelled, std::move(ended)});
    record(RunBegan{.budget = budget_, .fixed_lag = fixed_lag_});
    const RunResumed resumed = whole_.resumed(checkpoint, budget_, fixed_lag_);
    record(resumed);
    live_.clear();
    for (const ResumedGroup& group : resumed.groups)
      if (!group.discarded) live_.push_back({group.group, group.position, group.slot, {}, {}});
    next_group_ = resumed.next_group.value;
    next_position_ = resumed.next_position;
    step_ = checkpoint.value;
    std::erase_if(checkpoints_, [&](StepId kept) { return kept > checkpoint; });
  }

  Rng rng_;
  bool fixed_lag_;
  std::size_t kept_;
  scheduler::Budget budget_{.groups_per_step = 3, .steps_total = 1 << 20};
  std::vector<JournalEvent> events_;
  GroupHistory whole_;
  std::vector<RestoredGroup> live_;
  std::vector<StepId> checkpoints_;
  std::int64_t step_ = 0, next_position_ = 0;
  std::uint64_t next_group_ = 1;
};

}  // namespace tandem::exchange
