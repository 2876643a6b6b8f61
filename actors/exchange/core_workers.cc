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
    : config_(std::move(config)), flow_{.ledger = scheduler::Ledger(config_.budget)} {
  if (config_.fixed_lag) flow_.fixed.emplace(config_.budget);
  CHECK(config_.evaluation.prompts == std::ssize(config_.validation));
  if (config_.broadcasts) versions_.broadcasts.emplace(config_.job, *config_.broadcasts);
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
  effects_.push_back(ToLearner{training_.learner->address, std::move(message)});
}

void ExchangeCore::release(const runtime::PayloadRef& payload) {
  flow_.held.forget(payload);
  effects_.push_back(ReleasePayload{payload});
}

void ExchangeCore::fail(std::string reason) {
  if (ending_.save_deadline)
    ending_.save_deadline = now_;  // what goes wrong now may be the save itself
  take(EndJob{JobOutcome::kFailed, std::move(reason)});
}

// ---- actors come up and end

ExchangeCore::Worker* ExchangeCore::sender(std::map<std::string, Worker>& role,
                                           const Sender& from) {
  const auto it = role.find(from.actor);
  if (it == role.end() || it->second.address.incarnation != from.incarnation) return nullptr;
  return &it->second;
}

bool ExchangeCore::has_ended(const Sender& from) const {
  const auto it = workers_.ended.find(from.actor);
  return it != workers_.ended.end() && from.incarnation <= it->second;
}

void ExchangeCore::end_incarnation(const std::string& actor, Incarnation incarnation) {
  workers_.ended[actor] = std::max(workers_.ended[actor], incarnation);
  if (versions_.broadcasts) versions_.broadcasts->gone(actor, incarnation);
}

void ExchangeCore::take(RolloutUp up) {
  if (has_ended(up.from)) return;
  if (sender(workers_.rollouts, up.from)) return refuse(up.from, "RolloutUp: it is up already");
  if (const auto old = workers_.rollouts.find(up.from.actor); old != workers_.rollouts.end())
    forget_worker(old->second, now_);
  Worker& worker = workers_.rollouts[up.from.actor];
  worker =
      Worker{.address = {up.from.actor, up.from.incarnation}, .up = now_, .capacity = up.capacity};
  wake();
}

void ExchangeCore::take(RewardUp up) {
  if (has_ended(up.from)) return;
  if (sender(workers_.rewards, up.from)) return refuse(up.from, "RewardUp: it is up already");
  if (const auto old = workers_.rewards.find(up.from.actor); old != workers_.rewards.end())
    forget_worker(old->second, now_);
  workers_.rewards[up.from.actor] =
      Worker{.address = {up.from.actor, up.from.incarnation}, .capacity = up.capacity};
  wake();
}

// In seconds, of the part of the run that trains.
double ExchangeCore::lifetime(const Worker& worker, Time now) const {
  return statistics_.running_since ? seconds(now - std::max(worker.up, *statistics_.running_since))
                                   : 0.0;
}

void ExchangeCore::forget_worker(Worker& worker, Time now) {
  for (const GroupId group : flow_.ledger.release_holder(worker.address.incarnation))
    note({.kind = "released",
          .group = static_cast<std::int64_t>(group.value),
          .holder = worker.address.name});
  for (Evaluation& evaluation : evaluations_.running) evaluation.actor_down(worker.address.name);
  const bool generates = workers_.rollouts.contains(worker.address.name);
  (generates ? workers_.no_rollout_since : workers_.no_reward_since) = now;
  if (generates) {
    statistics_.work.rollout_busy_seconds += worker.stats.busy_seconds;
    statistics_.work.rollout_actor_seconds += lifetime(worker, now);
  }
  workers_.drain_deadlines.erase(worker.address.name);
}

void ExchangeCore::take(ActorDown down) {
  end_incarnation(down.actor, down.incarnation);
  for (auto* role : {&workers_.rollouts, &workers_.rewards}) {
    const auto it = role->find(down.actor);
    if (it == role->end() || it->second.address.incarnation != down.incarnation) continue;
    forget_worker(it->second, now_);
    role->erase(it);
  }
  if (training_.learner &&
      training_.learner->address == runtime::Address{down.actor, down.incarnation}) {
    if (training_.busy && statistics_.running_since)
      statistics_.work.learner_busy_seconds += seconds(now_ - statistics_.step_sent);
    training_.learner.reset();
    training_.none_since = now_;
    end_broadcasts_of_learner();
    training_.busy = false;
    training_.save_due = false;
    training_.step.reset();
    training_.replay.clear();
    if (stage_ == Stage::kWarmStart)
      stage_ = Stage::kStarting;  // its next incarnation does it again
  }
  wake();
}

void ExchangeCore::take(DrainActor drain) {
  const Time deadline = now_ + std::chrono::milliseconds(drain.deadline_ms);
  if (versions_.broadcasts) versions_.broadcasts->leaves(drain.actor, drain.incarnation);
  for (auto* role : {&workers_.rollouts, &workers_.rewards})
    if (Worker* worker = sender(*role, {drain.actor, drain.incarnation})) {
      worker->draining = true;
      workers_.drain_deadlines[drain.actor] = deadline;
      wake();
      effects_.push_back(DecideAt{deadline});
      return;
    }
  end_incarnation(drain.actor, drain.incarnation);  // it never came up, and now it need not
  notify(ActorDrained{config_.job, drain.actor, drain.incarnation});
  wake();
}

void ExchangeCore::take(EndJob end) {
  const bool fails = end.outcome == JobOutcome::kFailed;
  if (!ending_.why)
    ending_.why = std::move(end);  // the first cause is the one that counts
  else if (fails && ending_.why->outcome == JobOutcome::kCancelled &&
           !ending_.why->reason.starts_with(kWhileCancelled))
    ending_.why->reason = kWhileCancelled + end.reason;
  wake();
}

// ---- rollouts

void ExchangeCore::take(Installed installed) {
  Worker* worker = sender(workers_.rollouts, installed.from);
  if (!worker) return;
  if (installed.version > versions_.published)
    return refuse(installed.from, "Installed: version " + std::to_string(installed.version.value) +
                                      ", which is not published");
  if (const auto why = misfit(installed)) return condemn(installed.from, *why);
  worker->installed = installed.version;
  statistics_.pause_seconds += installed.seconds;
  wake();
}

void ExchangeCore::take(RolloutStats stats) {
  statistics_.add_rate_point(now_);
  Worker* worker = sender(workers_.rollouts, stats.from);
  if (!worker) return;
  if (stats.generation_tokens > worker->stats.generation_tokens)
    extend_leases(*worker, now_ + config_.rollout_lease);
  worker->stats = std::move(stats);
}

// A holder that makes progress keeps what it holds, however long that takes.
void ExchangeCore::extend_leases(const Worker& worker, Time deadline) {
  for (const scheduler::Lease& lease : flow_.ledger.leases_of(worker.address.incarnation))
    CHECK(!flow_.ledger.extend({lease.group, lease.id, lease.epoch}, deadline));
}

void ExchangeCore::take(GroupsGenerated stored) {
  Generated& generated = stored.message;
  Worker* worker = sender(workers_.rollouts, generated.from);
  for (GroupHeader& header : generated.groups) {
    const bool is_its_own = stored.payloads.erase(header.payload) > 0;
    if (!is_its_own || flow_.held.contains(header.payload))
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
        worker ? flow_.ledger.generated(key_of(header.group, header.attempt, config_.epoch), oldest)
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
    ++flow_.generated_for_step;
    flow_.held.hold(header.payload);
    flow_.entries.at(header.group).header = std::move(header);
  }
  wake();
}

void ExchangeCore::take(Unservable unservable) {
  Worker* worker = sender(workers_.rollouts, unservable.from);
  if (!worker) return;
  if (const auto why = misfit(*worker, unservable.group, unservable.attempt))
    return refuse(unservable.from, "Unservable: " + *why);
  if (flow_.ledger.hand_back(key_of(unservable.group, unservable.attempt, config_.epoch),
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
  if (!sender(workers_.rollouts, evaluated.from)) return;
  for (Evaluation& evaluation : evaluations_.running)
    if (evaluation.id() == evaluated.evaluation)
      evaluation.generated(evaluated.from.actor, std::move(evaluated.completions),
                           evaluated.unservable);
  wake();
}

void ExchangeCore::discard(GroupId group, DiscardReason reason) {
  flow_.ledger.discard(group, reason);
  note({.kind = "discarded",
        .group = static_cast<std::int64_t>(group.value),
        .detail = scheduler::name(reason)});
  const auto entry = flow_.entries.find(group);
  if (entry->second.header) release(entry->second.header->payload);
  flow_.entries.erase(entry);
  if (flow_.fixed) flow_.fixed->discarded(group);
}

// ---- rewards

void ExchangeCore::take(GroupsScored scored) {
  Worker* worker = sender(workers_.rewards, scored.from);
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
  return flow_.generated_for_step <= config_.gen_batches_max * config_.budget.groups_per_step;
}

void ExchangeCore::take_scores(Worker& from, const GroupScore& group) {
  if (const auto refusal = flow_.ledger.scored(key_of(group.group, group.attempt, config_.epoch))) {
    note({.kind = "refused",
          .group = static_cast<std::int64_t>(group.group.value),
          .lease = group.attempt,
          .holder = from.address.name,
          .detail = scheduler::name(*refusal)});
    return;
  }
  from.holding.erase(group.group);
  Entry& entry = flow_.entries.at(group.group);
  entry.rewards.clear();
  const ScoreFailed beyond{"the reward is beyond what a 32-bit float holds"};
  for (const TrajectoryScore& score : group.scores) {
    const auto* value = std::get_if<Scored>(&score);
    const auto* failure = std::get_if<ScoreFailed>(&score);
    if (value && !(std::abs(value->value) <= std::numeric_limits<float>::max())) failure = &beyond;
    if (failure) {
      write_failure_sample(entry, entry.rewards.size(), *failure);
      discard(group.group, DiscardReason::kRewardFailed);
      if (++flow_.reward_failures >= kRewardFailedBatchesMax * config_.budget.groups_per_step)
        fail("the rewards of " + std::to_string(flow_.reward_failures) +
             " groups failed in a row; the last: " + workers_.troubles.explained(failure->reason));
      return;
    }
    workers_.troubles.scored(from.address.name);
    entry.rewards.push_back(static_cast<float>(value->value));
  }
  if (std::ssize(entry.rewards) != config_.n)
    return discard(group.group, DiscardReason::kRewardFailed);
  flow_.reward_failures = 0;
  const auto [low, high] = std::minmax_element(entry.rewards.begin(), entry.rewards.end());
  const bool varied = *low != *high;
  if (!varied && may_filter(entry)) return discard(group.group, DiscardReason::kZeroVariance);
  const bool kept_anyway = !varied && config_.filter_groups;
  note({.kind = "scored",
        .group = static_cast<std::int64_t>(group.group.value),
        .detail = kept_anyway ? "kept without variance: max_num_gen_batches is reached" : ""});
  if (flow_.fixed) flow_.fixed->scored(group.group);
}

// Late ones too are of use: they say why the actor ended.
void ExchangeCore::take(RewardTrouble trouble) {
  if (!sender(workers_.rewards, trouble.from) && !has_ended(trouble.from)) return;
  const std::string actor = trouble.from.actor;
  const RewardTrouble* const said = workers_.troubles.take(std::move(trouble), now_);
  if (!said) return;
  notify(ExchangeEvent{config_.job, actor, text(*said)});
  wake();
}

void ExchangeCore::take(TextsScored scored) {
  Worker* worker = sender(workers_.rewards, scored.from);
  if (!worker) return;
  for (const TextScore& text : scored.scores)
    if (std::holds_alternative<Scored>(text.score)) workers_.troubles.scored(scored.from.actor);
  for (Evaluation& evaluation : evaluations_.running) {
    if (evaluation.id() != scored.evaluation) continue;
    for (const Evaluation::Judged& judged : evaluation.scored(scored.from.actor, scored.scores))
      write_evaluation_sample(evaluation, judged);
  }
  wake();
}

}  // namespace tandem::actors
