// Rollouts and rewards as the exchange's core sees them: they come up, answer, drain and end; and
// step(), by which every input enters the core.
//
// Every answer names an incarnation and a lease. An answer of an incarnation that has ended is
// ignored (EX-L), one to a lease that has ended is refused by the ledger and journalled as refused,
// and one that no honest peer sends ends its sender (core_checks.cc).
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "actors/exchange/exchange_core.h"
#include "runtime/base/check.h"

namespace tandem::actors {

using scheduler::DiscardReason;
using scheduler::GroupState;
using scheduler::LeaseId;
using scheduler::LeaseKey;

namespace {

// A reward that always fails would discard and replace groups for ever.
constexpr std::int64_t kRewardFailedBatchesMax = 8;

LeaseKey key_of(GroupId group, std::uint32_t attempt, Epoch epoch) {
  return {.group = group, .id = LeaseId{attempt}, .epoch = epoch};
}

}  // namespace

ExchangeCore::ExchangeCore(ExchangeConfig config)
    : config_(std::move(config)), ledger_(config_.budget) {
  if (config_.fixed_lag) fixed_.emplace(config_.budget);
  CHECK(config_.evaluation.prompts == std::ssize(config_.validation));
  if (config_.broadcasts) broadcasts_.emplace(config_.job, *config_.broadcasts);
}

std::vector<ExchangeEffect> ExchangeCore::step(ExchangeInput input, Time now) {
  now_ = now;
  std::visit([this](auto& message) { take(std::move(message)); }, input);
  return std::exchange(effects_, {});
}

void ExchangeCore::tell_rollout(const runtime::Address& to, RolloutInbox message) {
  effects_.push_back(ToRollout{to, std::move(message)});
}

void ExchangeCore::tell_reward(const runtime::Address& to, RewardInbox message) {
  effects_.push_back(ToReward{to, std::move(message)});
}

void ExchangeCore::tell_learner(LearnerInbox message) {
  effects_.push_back(ToLearner{learner_->address, std::move(message)});
}

void ExchangeCore::release(const runtime::PayloadRef& payload) {
  held_.forget(payload);
  effects_.push_back(ReleasePayload{payload});
}

void ExchangeCore::fail(std::string reason) {
  if (save_deadline_) save_deadline_ = now_;  // what goes wrong now may be the save itself
  take(EndJob{JobOutcome::kFailed, std::move(reason)});
}

// ---- actors come up and end

ExchangeCore::Worker* ExchangeCore::sender(std::map<std::string, Worker>& role,
                                           const Sender& from) {
  const auto it = role.find(from.actor);
  if (it == role.end() || it->second.address.incarnation != from.incarnation) return nullptr;
  return &it->second;
}

bool ExchangeCore::buried(const Sender& from) const {
  const auto it = buried_.find(from.actor);
  return it != buried_.end() && from.incarnation <= it->second;
}

void ExchangeCore::bury(const std::string& actor, Incarnation incarnation) {
  buried_[actor] = std::max(buried_[actor], incarnation);
  if (broadcasts_) broadcasts_->gone(actor, incarnation);
}

void ExchangeCore::take(RolloutUp up) {
  if (buried(up.from)) return;
  if (sender(rollouts_, up.from)) return refuse(up.from, "RolloutUp: it is up already");
  if (const auto old = rollouts_.find(up.from.actor); old != rollouts_.end())
    forget_worker(old->second, now_);
  Worker& worker = rollouts_[up.from.actor];
  worker =
      Worker{.address = {up.from.actor, up.from.incarnation}, .up = now_, .capacity = up.capacity};
  wake();
}

void ExchangeCore::take(RewardUp up) {
  if (buried(up.from)) return;
  if (sender(rewards_, up.from)) return refuse(up.from, "RewardUp: it is up already");
  if (const auto old = rewards_.find(up.from.actor); old != rewards_.end())
    forget_worker(old->second, now_);
  rewards_[up.from.actor] =
      Worker{.address = {up.from.actor, up.from.incarnation}, .capacity = up.capacity};
  wake();
}

// In seconds, of the part of the run that trains.
double ExchangeCore::lifetime(const Worker& worker, Time now) const {
  return statistics_.running_since ? seconds(now - std::max(worker.up, *statistics_.running_since))
                                   : 0.0;
}

void ExchangeCore::forget_worker(Worker& worker, Time now) {
  for (const GroupId group : ledger_.release_holder(worker.address.incarnation))
    note({.kind = "released",
          .group = static_cast<std::int64_t>(group.value),
          .holder = worker.address.name});
  for (Evaluation& evaluation : evaluations_) evaluation.actor_down(worker.address.name);
  if (rollouts_.contains(worker.address.name)) {
    statistics_.work.rollout_busy_seconds += worker.stats.busy_seconds;
    statistics_.work.rollout_actor_seconds += lifetime(worker, now);
  }
  drain_deadlines_.erase(worker.address.name);
}

void ExchangeCore::take(ActorDown down) {
  bury(down.actor, down.incarnation);
  for (auto* role : {&rollouts_, &rewards_}) {
    const auto it = role->find(down.actor);
    if (it == role->end() || it->second.address.incarnation != down.incarnation) continue;
    forget_worker(it->second, now_);
    role->erase(it);
  }
  if (learner_ && learner_->address == runtime::Address{down.actor, down.incarnation}) {
    if (learner_busy_ && statistics_.running_since)
      statistics_.work.learner_busy_seconds += seconds(now_ - statistics_.step_sent);
    learner_.reset();
    end_broadcasts_of_learner();
    learner_busy_ = false;
    save_due_ = false;
    step_in_flight_.reset();
    replay_.clear();
    if (stage_ == Stage::kWarmStart)
      stage_ = Stage::kStarting;  // its next incarnation does it again
  }
  wake();
}

void ExchangeCore::take(DrainActor drain) {
  const Time deadline = now_ + std::chrono::milliseconds(drain.deadline_ms);
  if (broadcasts_) broadcasts_->leaves(drain.actor, drain.incarnation);
  for (auto* role : {&rollouts_, &rewards_})
    if (Worker* worker = sender(*role, {drain.actor, drain.incarnation})) {
      worker->draining = true;
      drain_deadlines_[drain.actor] = deadline;
      wake();
      effects_.push_back(DecideAt{deadline});
      return;
    }
  bury(drain.actor, drain.incarnation);  // it never came up, and now it need not
  notify(ActorDrained{config_.job, drain.actor, drain.incarnation});
  wake();
}

void ExchangeCore::take(EndJob end) {
  const bool fails = end.outcome == JobOutcome::kFailed;
  if (!ending_)
    ending_ = std::move(end);  // the first cause is the one that counts
  else if (fails && ending_->outcome == JobOutcome::kCancelled &&
           !ending_->reason.starts_with(kWhileCancelled))
    ending_->reason = kWhileCancelled + end.reason;
  wake();
}

// ---- rollouts

void ExchangeCore::take(Installed installed) {
  Worker* worker = sender(rollouts_, installed.from);
  if (!worker) return;
  if (installed.version > published_)
    return refuse(installed.from, "Installed: version " + std::to_string(installed.version.value) +
                                      ", which is not published");
  if (const auto why = misfit(installed)) return condemn(installed.from, *why);
  worker->installed = installed.version;
  statistics_.pause_seconds += installed.seconds;
  wake();
}

void ExchangeCore::take(RolloutStats stats) {
  statistics_.add_rate_point(now_);
  Worker* worker = sender(rollouts_, stats.from);
  if (!worker) return;
  if (stats.generation_tokens > worker->stats.generation_tokens)
    extend_leases(*worker, now_ + config_.rollout_lease);
  worker->stats = std::move(stats);
}

// A holder that makes progress keeps what it holds, however long that takes.
void ExchangeCore::extend_leases(const Worker& worker, Time deadline) {
  for (const scheduler::Lease& lease : ledger_.leases_of(worker.address.incarnation))
    CHECK(!ledger_.extend({lease.group, lease.id, lease.epoch}, deadline));
}

void ExchangeCore::take(GroupsGenerated stored) {
  Generated& generated = stored.message;
  Worker* worker = sender(rollouts_, generated.from);
  for (GroupHeader& header : generated.groups) {
    const bool is_its_own = stored.payloads.erase(header.payload) > 0;
    if (!is_its_own || held_.contains(header.payload))
      return refuse(generated, "a payload that is not its own");
    if (const auto why = worker ? misfit(*worker, header) : std::nullopt)
      return refuse(generated, *why);
    PolicyVersion oldest =
        header.trajectories.empty() ? PolicyVersion{} : header.trajectories[0].oldest;
    std::uint64_t tokens = 0;
    for (const TrajectoryHeader& trajectory : header.trajectories) {
      oldest = std::min(oldest, trajectory.oldest);
      tokens += static_cast<std::uint64_t>(trajectory.completion_tokens);
    }
    const auto refusal =
        worker ? ledger_.generated(key_of(header.group, header.attempt, config_.epoch), oldest)
               : std::optional(scheduler::Refusal::kOldLease);
    note({.kind = refusal ? "refused" : "generated",
          .group = static_cast<std::int64_t>(header.group.value),
          .lease = header.attempt,
          .holder = generated.from.actor,
          .version = oldest.value,
          .detail = refusal ? scheduler::name(*refusal) : ""});
    if (refusal) {
      // An over-age group is not its holder's any more; an old lease says nothing of the new one.
      if (*refusal == scheduler::Refusal::kOverAge) worker->holding.erase(header.group);
      release(header.payload);
      continue;
    }
    worker->holding.erase(header.group);
    statistics_.work.tokens_generated += tokens;
    ++generated_for_step_;
    held_.hold(header.payload);
    entries_.at(header.group).header = std::move(header);
  }
  wake();
}

void ExchangeCore::take(Unservable unservable) {
  Worker* worker = sender(rollouts_, unservable.from);
  if (!worker) return;
  if (const auto why = misfit(*worker, unservable.group, unservable.attempt))
    return refuse(unservable.from, "Unservable: " + *why);
  if (ledger_.hand_back(key_of(unservable.group, unservable.attempt, config_.epoch),
                        scheduler::Kept::kNothing))
    return;
  worker->holding.erase(unservable.group);
  note({.kind = "handed_back",
        .group = static_cast<std::int64_t>(unservable.group.value),
        .lease = unservable.attempt,
        .holder = unservable.from.actor,
        .detail = unservable.message});
  switch (unservable.reason) {
    case UnservableReason::kPromptTooLong:
      discard(unservable.group, DiscardReason::kPromptTooLong);
      break;
    case UnservableReason::kCannotEncode:
      return fail("a prompt cannot be encoded: " + unservable.message);
    case UnservableReason::kVersionGone:  // leased again, to an actor that can still have it
      break;
  }
  wake();
}

void ExchangeCore::take(Evaluated evaluated) {
  if (!sender(rollouts_, evaluated.from)) return;
  for (Evaluation& evaluation : evaluations_)
    if (evaluation.id() == evaluated.evaluation)
      evaluation.generated(evaluated.from.actor, std::move(evaluated.completions),
                           evaluated.unservable);
  wake();
}

void ExchangeCore::discard(GroupId group, DiscardReason reason) {
  ledger_.discard(group, reason);
  note({.kind = "discarded",
        .group = static_cast<std::int64_t>(group.value),
        .detail = scheduler::name(reason)});
  const auto entry = entries_.find(group);
  if (entry->second.header) release(entry->second.header->payload);
  entries_.erase(entry);
  if (fixed_) fixed_->discarded(group);
}

// ---- rewards

void ExchangeCore::take(GroupsScored scored) {
  Worker* worker = sender(rewards_, scored.from);
  if (!worker) return;
  for (const GroupScore& group : scored.groups) {
    if (const auto why = misfit(*worker, group.group, group.attempt))
      return refuse(scored.from, "GroupsScored: " + *why);
    take_scores(*worker, group);
  }
  extend_leases(*worker, now_ + config_.reward_lease);
  wake();
}

// Whether a group without variance may still be replaced. Under fixed_lag the count of its own slot
// decides: what else was generated meanwhile depends on timing.
bool ExchangeCore::may_filter(const Entry& entry) const {
  if (!config_.filter_groups) return false;
  if (entry.slot) return entry.slot->attempt + 1 < config_.gen_batches_max;
  return generated_for_step_ <= config_.gen_batches_max * config_.budget.groups_per_step;
}

void ExchangeCore::take_scores(Worker& from, const GroupScore& group) {
  if (const auto refusal = ledger_.scored(key_of(group.group, group.attempt, config_.epoch))) {
    note({.kind = "refused",
          .group = static_cast<std::int64_t>(group.group.value),
          .lease = group.attempt,
          .holder = from.address.name,
          .detail = scheduler::name(*refusal)});
    return;
  }
  from.holding.erase(group.group);
  Entry& entry = entries_.at(group.group);
  entry.rewards.clear();
  const ScoreFailed beyond{"the reward is beyond what a 32-bit float holds"};
  for (const TrajectoryScore& score : group.scores) {
    const auto* value = std::get_if<Scored>(&score);
    const auto* failure = std::get_if<ScoreFailed>(&score);
    if (value && !(std::abs(value->value) <= std::numeric_limits<float>::max())) failure = &beyond;
    if (failure) {
      write_failure_sample(entry, entry.rewards.size(), *failure);
      discard(group.group, DiscardReason::kRewardFailed);
      if (++reward_failures_ >= kRewardFailedBatchesMax * config_.budget.groups_per_step)
        fail("the rewards of " + std::to_string(reward_failures_) +
             " groups failed in a row; the last: " + troubles_.explained(failure->reason));
      return;
    }
    troubles_.scored(from.address.name);
    entry.rewards.push_back(static_cast<float>(value->value));
  }
  if (std::ssize(entry.rewards) != config_.n)
    return discard(group.group, DiscardReason::kRewardFailed);
  reward_failures_ = 0;
  const auto [low, high] = std::minmax_element(entry.rewards.begin(), entry.rewards.end());
  const bool varied = *low != *high;
  if (!varied && may_filter(entry)) return discard(group.group, DiscardReason::kZeroVariance);
  const bool kept_anyway = !varied && config_.filter_groups;
  note({.kind = "scored",
        .group = static_cast<std::int64_t>(group.group.value),
        .detail = kept_anyway ? "kept without variance: max_num_gen_batches is reached" : ""});
  if (fixed_) fixed_->scored(group.group);
}

// Late ones too are of use: they say why the actor ended.
void ExchangeCore::take(RewardTrouble trouble) {
  if (!sender(rewards_, trouble.from) && !buried(trouble.from)) return;
  const std::string actor = trouble.from.actor;
  const RewardTrouble* const said = troubles_.take(std::move(trouble), now_);
  if (!said) return;
  notify(ExchangeEvent{config_.job, actor, text(*said)});
  wake();
}

void ExchangeCore::take(TextsScored scored) {
  Worker* worker = sender(rewards_, scored.from);
  if (!worker) return;
  for (const TextScore& text : scored.scores)
    if (std::holds_alternative<Scored>(text.score)) troubles_.scored(scored.from.actor);
  for (Evaluation& evaluation : evaluations_) {
    if (evaluation.id() != scored.evaluation) continue;
    for (const Evaluation::Judged& judged : evaluation.scored(scored.from.actor, scored.scores))
      write_evaluation_sample(evaluation, judged);
  }
  wake();
}

}  // namespace tandem::actors
