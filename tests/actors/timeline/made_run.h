// The journal of a run that nobody ran, with every step of its groups' trips and with times: leases
// overlap, end well or not, actors and controllers die, and the run goes on from checkpoints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "runtime/base/rng.h"

namespace tandem::timeline {

class MadeRun {
 public:
  struct Shape {
    std::size_t rollouts = 3, batch = 4, live = 16;
    bool faults = true;
  };
  MadeRun(std::uint64_t seed, Shape shape) : rng_(seed), shape_(shape) { begin(); }
  explicit MadeRun(std::uint64_t seed) : MadeRun(seed, Shape{}) {}

  // The events of a while. Some have no time between them.
  std::vector<exchange::JournalEntry> next() {
    for (int i = 0; i < 16; ++i) act();
    return std::exchange(entries_, {});
  }
  std::int64_t committed() const { return committed_; }  // steps, in all attempts
  std::uint64_t admitted() const { return next_group_ - 1; }
  std::int64_t trained_ms() const { return trained_ms_; }  // of the commits, repeated ones too

 private:
  struct Lease {
    GroupId group;
    scheduler::LeaseId id;
    ActorId holder;
  };

  template <class Event>
  void record(Event event) {
    entries_.push_back({now_, std::move(event)});
  }
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }
  template <class T>
  T take(std::vector<T>& from) {
    const std::size_t at = rng_.below(from.size());
    T taken = std::move(from[at]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
    return taken;
  }
  ActorId rollout(std::size_t i) const {
    return {"made-1/rollout/" + std::to_string(i), Incarnation{incarnations_[i]}};
  }
  ActorId learner() const { return {"made-1/learner/0", Incarnation{learner_}}; }
  ActorId reward() const { return {"made-1/reward/0", Incarnation{2}}; }

  void begin() {
    record(exchange::RunBegan{.budget = {}, .epoch = Epoch{++epoch_}});
    incarnations_.assign(shape_.rollouts, 0);
    record(exchange::StageEntered{exchange::RunStage::kRunning, "training"});
    record(exchange::WorkerCameUp{messages::Role::kReward, reward(), 8});
    for (std::size_t i = 0; i < shape_.rollouts; ++i) come_up(i);
    learner_comes_up();
  }
  void come_up(std::size_t i) {
    incarnations_[i] = ++incarnation_;
    record(exchange::WorkerCameUp{messages::Role::kRollout, rollout(i), 64});
  }
  void learner_comes_up() {
    learner_ = ++incarnation_;
    record(exchange::LearnerCameUp{learner(), std::nullopt, {}});
  }

  void act() {
    if (!one_in(3)) now_ += static_cast<std::int64_t>(rng_.below(20));
    if (shape_.faults && one_in(60)) return fault();
    if (admitted_.size() + rolling_.size() + generated_.size() + scoring_.size() + scored_.size() +
            batch_.size() <
        shape_.live) {
      admitted_.push_back(GroupId{next_group_++});
      record(exchange::GroupAdmitted{admitted_.back(), 0, std::nullopt});
    }
    lease();
    answer();
    train();
    if (one_in(50)) evaluate();
  }

  void lease() {
    if (!admitted_.empty() && !one_in(4)) {
      rolling_.push_back({take(admitted_), scheduler::LeaseId{next_lease_++},
                          rollout(rng_.below(shape_.rollouts))});
      record(exchange::RolloutLeased{rolling_.back().group, rolling_.back().id,
                                     rolling_.back().holder, PolicyVersion{step_}});
    }
    if (!generated_.empty() && !one_in(4)) {
      scoring_.push_back({take(generated_), scheduler::LeaseId{next_lease_++}, reward()});
      record(exchange::RewardLeased{scoring_.back().group, scoring_.back().id,
                                    scoring_.back().holder});
    }
  }
  void answer() {
    if (!rolling_.empty() && !one_in(3)) {
      const Lease lease = take(rolling_);
      if (shape_.faults && one_in(12)) {
        one_in(2) ? record(exchange::LeaseExpired{lease.group})
                  : record(exchange::GroupHandedBack{lease.group, lease.id, lease.holder, "late"});
        admitted_.push_back(lease.group);
      } else {
        record(exchange::GroupGenerated{
            lease.holder,
            {.group = lease.group,
             .attempt = static_cast<std::uint32_t>(lease.id.value),
             .trajectories = {{PolicyVersion{step_}, PolicyVersion{step_}, 5, {}}}}});
        generated_.push_back(lease.group);
      }
    }
    if (scoring_.empty() || one_in(3)) return;
    const Lease lease = take(scoring_);
    if (shape_.faults && one_in(8))
      return record(exchange::GroupDiscarded{lease.group, scheduler::DiscardReason::kZeroVariance});
    record(exchange::GroupScored{.group = lease.group, .lease = lease.id, .rewards = {1}});
    scored_.push_back(lease.group);
  }

  void train() {
    if (busy_since_) {
      if (one_in(3)) return commit();
      return;
    }
    if (repeat_ > 0) return ask(step_ - repeat_);
    if (scored_.size() < shape_.batch) return;
    for (std::size_t i = 0; i < shape_.batch; ++i) batch_.push_back(take(scored_));
    record(exchange::BatchFormed{StepId{step_}, batch_});
    ask(step_);
  }
  void ask(std::int64_t step) {
    record(exchange::LearnerAsked{exchange::LearnerTask::kTrain, StepId{step}});
    busy_since_ = now_;
  }
  void commit() {
    const bool repeated = repeat_ > 0;
    const StepId step{repeated ? step_ - repeat_ : step_};
    trained_ms_ += now_ - *std::exchange(busy_since_, std::nullopt);
    record(exchange::StepTrained{
        .step = step,
        .learner = Incarnation{learner_},
        .groups = repeated ? std::vector<GroupId>{} : std::exchange(batch_, {}),
        .publication = messages::Publication{.version = PolicyVersion{step.value + 1}}});
    if (repeated) {
      --repeat_;
      return;
    }
    ++step_;
    ++committed_;
    const ActorId who = rollout(rng_.below(shape_.rollouts));
    if (step_ % 3 != 0) record(exchange::InstallPaused{who, PolicyVersion{step_}, 0.002});
    record(exchange::VersionInstalled{who, PolicyVersion{step_}});
    if (step_ % 8 != 0) return;
    record(exchange::CheckpointAsked{StepId{step_}});
    record(exchange::CheckpointKept{StepId{step_}, "", ""});
    checkpoint_ = step_;
  }

  void evaluate() {
    const messages::EvaluationId id{++evaluation_};
    using exchange::EvaluationKind::kPeriodic;
    record(exchange::EvaluationBegan{id, kPeriodic, PolicyVersion{step_}});
    now_ += 5;
    if (one_in(4)) return;  // it never ends
    record(exchange::EvaluationEnded{id, kPeriodic, PolicyVersion{step_}, {}, {}});
  }

  void fault() {
    switch (rng_.below(4)) {
      case 0:
        return rollout_dies(rng_.below(shape_.rollouts));
      case 1:
        return learner_dies();
      case 2:
        return controller_restarts();
      default:
        return resume();
    }
  }
  void give_back(const ActorId& holder) {
    std::erase_if(rolling_, [&](const Lease& lease) {
      if (lease.holder != holder) return false;
      record(exchange::LeaseReleased{lease.group, holder});
      admitted_.push_back(lease.group);
      return true;
    });
  }
  void rollout_dies(std::size_t i) {
    give_back(rollout(i));
    record(exchange::IncarnationEnded{rollout(i)});
    now_ += 30;
    come_up(i);
  }
  // The batch in training is trained by the next incarnation, after the steps since the checkpoint.
  void learner_dies() {
    record(exchange::IncarnationEnded{learner()});
    now_ += 50;
    learner_comes_up();
    repeat_ = step_ - checkpoint_;
    record(exchange::LearnerRestarted{learner(), StepId{checkpoint_}, repeat_});
    busy_since_.reset();
    if (repeat_ == 0 && !batch_.empty()) ask(step_);
    if (repeat_ == 0 || batch_.empty()) return;
    scored_.insert(scored_.end(), batch_.begin(), batch_.end());
    batch_.clear();
  }
  void controller_restarts() {
    record(exchange::ExchangeFollowed{Epoch{++epoch_}});
    for (const Lease& lease : rolling_)
      if (one_in(2)) record(exchange::LeaseAdopted{lease.group, lease.id, lease.holder});
  }
  void resume() {
    std::vector<exchange::ResumedGroup> live;
    if (one_in(2)) {
      std::vector<GroupId> all = scored_;
      record(exchange::LiveDiscarded{scheduler::DiscardReason::kCancelled, all});
    }
    for (const GroupId group : admitted_) live.push_back({group, 0, std::nullopt, std::nullopt});
    rolling_.clear(), generated_.clear(), scoring_.clear(), scored_.clear(), batch_.clear();
    busy_since_.reset();
    repeat_ = 0;
    now_ += 1000;
    begin();
    step_ = checkpoint_;
    record(exchange::RunResumed{.checkpoint = StepId{checkpoint_}, .groups = live});
  }

  Rng rng_;
  const Shape shape_;
  std::vector<exchange::JournalEntry> entries_;
  std::int64_t now_ = 1'700'000'000'000;
  std::vector<GroupId> admitted_, generated_, scored_, batch_;
  std::vector<Lease> rolling_, scoring_;
  std::vector<std::uint64_t> incarnations_;
  std::optional<std::int64_t> busy_since_;
  std::uint64_t next_group_ = 1, next_lease_ = 1, incarnation_ = 10, learner_ = 0, epoch_ = 0,
                evaluation_ = 0;
  std::int64_t step_ = 0, checkpoint_ = 0, repeat_ = 0, committed_ = 0, trained_ms_ = 0;
};

}  // namespace tandem::timeline
