#include "actors/controller/exchange.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/rng.h"

namespace tandem::actors {

using scheduler::DiscardReason;
using scheduler::GroupState;
using scheduler::LeaseId;
using scheduler::LeaseKey;

namespace {

LeaseKey key_of(GroupId group, std::uint32_t attempt, Epoch epoch) {
  return {.group = group, .id = LeaseId{attempt}, .epoch = epoch};
}

}  // namespace

Exchange::Exchange(ExchangeConfig config, ExchangeLinks links, RunRecord& record,
                   PayloadShelf& shelf)
    : config_(std::move(config)),
      links_(std::move(links)),
      record_(record),
      shelf_(shelf),
      ledger_(config_.budget) {
  if (config_.fixed_lag) fixed_.emplace(config_.budget);
}

// ---- lives of actors

Exchange::Worker* Exchange::sender(std::map<std::string, Worker>& role, const Sender& from) {
  const auto it = role.find(from.actor);
  if (it == role.end() || it->second.address.incarnation != from.incarnation) return nullptr;
  return &it->second;
}

void Exchange::handle(runtime::Context& cx, RolloutUp up) {
  if (const auto old = rollouts_.find(up.from.actor); old != rollouts_.end())
    forget_worker(old->second);
  Worker& worker = rollouts_[up.from.actor];
  worker = Worker{.address = {up.from.actor, up.from.incarnation}, .capacity = up.capacity};
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, RewardUp up) {
  if (const auto old = rewards_.find(up.from.actor); old != rewards_.end())
    forget_worker(old->second);
  rewards_[up.from.actor] =
      Worker{.address = {up.from.actor, up.from.incarnation}, .capacity = up.capacity};
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, LearnerUp up) {
  learner_ = Worker{.address = {up.from.actor, up.from.incarnation}};
  learner_busy_ = false;
  step_in_flight_.reset();
  const StepId checkpoint = up.checkpoint.value_or(StepId{0});
  if (stage_ == Stage::kStarting || stage_ == Stage::kWarmStart) {
    if (up.checkpoint && stage_ == Stage::kStarting) restore();
    if (up.checkpoint && checkpoint != ledger_.next_commit())
      return fail("the newest checkpoint is of step " + std::to_string(checkpoint.value) +
                  " but the journal's is of step " + std::to_string(ledger_.next_commit().value));
    send(links_.learner, learner_->address, PublishInitial{});
    publish_asked_ = true;
    learner_busy_ = true;
  } else if (!up.checkpoint && ledger_.next_commit().value > 0) {
    return fail("the learner came back without any checkpoint: " +
                std::to_string(ledger_.next_commit().value) + " steps are lost");
  } else {
    const auto resend = ledger_.learner_started(checkpoint, up.from.incarnation);
    replay_.assign(resend.begin(), resend.end());
    note({.kind = "learner_restarted",
          .holder = up.from.actor + "#" + std::to_string(up.from.incarnation.value),
          .step = checkpoint.value,
          .detail = std::to_string(resend.size()) + " batches to train again"});
    if (checkpoint_awaited_)  // the request died with the learner that had it
      send(links_.learner, learner_->address, SaveCheckpoint{StepId{*checkpoint_awaited_}});
  }
  wake(cx);
}

void Exchange::forget_worker(Worker& worker) {
  for (const GroupId group : ledger_.release_holder(worker.address.incarnation)) {
    note({.kind = "released",
          .group = static_cast<std::int64_t>(group.value),
          .holder = worker.address.name});
    if (auto& entry = entries_.at(group);
        entry.header && ledger_.find(group)->state == GroupState::kAdmitted)
      entry.header.reset();
  }
  for (Evaluation& evaluation : evaluations_) evaluation.actor_down(worker.address.name);
  statistics_.rollout_busy_seconds += worker.stats.busy_seconds;
  drain_deadlines_.erase(worker.address.name);
}

void Exchange::handle(runtime::Context& cx, ActorDown down) {
  for (auto* role : {&rollouts_, &rewards_}) {
    const auto it = role->find(down.actor);
    if (it == role->end() || it->second.address.incarnation != down.incarnation) continue;
    forget_worker(it->second);
    role->erase(it);
  }
  if (learner_ && learner_->address == runtime::Address{down.actor, down.incarnation}) {
    if (learner_busy_ && statistics_.running_since)
      statistics_.learner_busy_seconds += seconds(cx.now() - statistics_.step_sent);
    learner_.reset();
    learner_busy_ = false;
    step_in_flight_.reset();
    replay_.clear();
    if (stage_ == Stage::kWarmStart) stage_ = Stage::kStarting;  // its next life does it again
  }
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, DrainActor drain) {
  const Time deadline = cx.now() + std::chrono::milliseconds(drain.deadline_ms);
  for (auto* role : {&rollouts_, &rewards_})
    if (Worker* worker = sender(*role, {drain.actor, drain.incarnation})) {
      worker->draining = true;
      drain_deadlines_[drain.actor] = deadline;
      wake(cx);
      cx.after(deadline - cx.now(), [this](runtime::Context& then) { wake(then); });
      return;
    }
  notices_.push_back(ActorDrained{config_.job, drain.actor, drain.incarnation});  // never came up
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, EndJob end) {
  ending_ = std::move(end);
  wake(cx);
}

// ---- rollouts

void Exchange::handle(runtime::Context& cx, Installed installed) {
  Worker* worker = sender(rollouts_, installed.from);
  if (!worker) return;
  worker->installed = installed.version;
  statistics_.pause_seconds += installed.seconds;
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, RolloutStats stats) {
  if (Worker* worker = sender(rollouts_, stats.from)) worker->stats = std::move(stats);
  statistics_.add_rate_point(cx.now());
}

void Exchange::handle(runtime::Context& cx, Generated generated) {
  Worker* worker = sender(rollouts_, generated.from);
  for (GroupHeader& header : generated.groups) {
    PolicyVersion oldest =
        header.trajectories.empty() ? PolicyVersion{} : header.trajectories[0].oldest;
    std::uint64_t tokens = 0;
    for (const TrajectoryHeader& trajectory : header.trajectories) {
      oldest = std::min(oldest, trajectory.oldest);
      tokens += static_cast<std::uint64_t>(trajectory.completion_tokens);
    }
    const auto refusal =
        worker && std::ssize(header.trajectories) == config_.n
            ? ledger_.generated(key_of(header.group, header.attempt, config_.epoch), oldest)
            : std::optional(scheduler::Refusal::kOldLease);
    note({.kind = refusal ? "refused" : "generated",
          .group = static_cast<std::int64_t>(header.group.value),
          .lease = header.attempt,
          .holder = generated.from.actor,
          .version = oldest.value,
          .detail = refusal ? scheduler::name(*refusal) : ""});
    if (refusal) {
      shelf_.release(header.payload);
      continue;
    }
    worker->holding.erase(header.group);
    statistics_.tokens_generated += tokens;
    ++generated_for_step_;
    entries_.at(header.group).header = std::move(header);
  }
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, Unservable unservable) {
  Worker* worker = sender(rollouts_, unservable.from);
  if (!worker || ledger_.hand_back(key_of(unservable.group, unservable.attempt, config_.epoch),
                                   scheduler::Kept::kNothing))
    return;
  worker->holding.erase(unservable.group);
  switch (unservable.reason) {
    case UnservableReason::kPromptTooLong:
      discard(unservable.group, DiscardReason::kPromptTooLong);
      break;
    case UnservableReason::kCannotEncode:
      return fail("a prompt cannot be encoded: " + unservable.message);
    case UnservableReason::kVersionGone:  // leased again, to an actor that can still have it
      break;
  }
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, Evaluated evaluated) {
  if (!sender(rollouts_, evaluated.from)) return;
  for (Evaluation& evaluation : evaluations_)
    if (evaluation.id() == evaluated.evaluation)
      evaluation.generated(evaluated.from.actor, std::move(evaluated.completions),
                           evaluated.unservable);
  wake(cx);
}

void Exchange::discard(GroupId group, DiscardReason reason) {
  ledger_.discard(group, reason);
  note({.kind = "discarded",
        .group = static_cast<std::int64_t>(group.value),
        .detail = scheduler::name(reason)});
  const auto entry = entries_.find(group);
  if (entry->second.header) shelf_.release(entry->second.header->payload);
  entries_.erase(entry);
  if (fixed_) fixed_->discarded(group);
}

// ---- rewards

void Exchange::handle(runtime::Context& cx, GroupsScored scored) {
  Worker* worker = sender(rewards_, scored.from);
  if (!worker) return;
  for (const GroupScore& group : scored.groups) take_scores(cx, *worker, group);
  wake(cx);
}

void Exchange::take_scores(runtime::Context&, Worker& from, const GroupScore& group) {
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
  for (const TrajectoryScore& score : group.scores) {
    const auto* value = std::get_if<Scored>(&score);
    if (!value) return discard(group.group, DiscardReason::kRewardFailed);
    entry.rewards.push_back(static_cast<float>(value->value));
  }
  if (std::ssize(entry.rewards) != config_.n)
    return discard(group.group, DiscardReason::kRewardFailed);
  const auto [low, high] = std::minmax_element(entry.rewards.begin(), entry.rewards.end());
  const bool may_filter =
      generated_for_step_ <= config_.gen_batches_max * config_.budget.groups_per_step;
  if (config_.filter_groups && may_filter && *low == *high)
    return discard(group.group, DiscardReason::kZeroVariance);
  note({.kind = "scored", .group = static_cast<std::int64_t>(group.group.value)});
  if (fixed_) fixed_->scored(group.group);
}

void Exchange::handle(runtime::Context& cx, TextsScored scored) {
  Worker* worker = sender(rewards_, scored.from);
  if (!worker) return;
  for (Evaluation& evaluation : evaluations_)
    if (evaluation.id() == scored.evaluation) evaluation.scored(scored.from.actor, scored.scores);
  wake(cx);
}

// ---- learner

void Exchange::handle(runtime::Context& cx, Published published) {
  if (!learner_ || learner_->address.incarnation != published.from.incarnation) return;
  learner_busy_ = false;
  publish_asked_ = false;
  published_ = std::max(published_, published.publication.version);
  oldest_retained_ = published.publication.oldest_retained;
  statistics_.add_publication(published.publication);
  if (published_ == kInitialWeights) {
    if (config_.warm_start) {
      if (!config_.validation.empty()) start_evaluation(EvaluationKind::kBefore, kInitialWeights);
      enter(Stage::kWarmStart, "warm start");
    }
    send(links_.learner, learner_->address, WarmStart{});
    learner_busy_ = true;
  } else {  // resumed from a checkpoint
    ledger_.published(published_);
    enter(Stage::kRunning, "resumed at step " + std::to_string(ledger_.next_commit().value));
    ledger_.learner_started(ledger_.next_commit(), published.from.incarnation);
    statistics_.running_since = cx.now();
  }
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, WarmStartProgress progress) {
  if (!learner_ || learner_->address.incarnation != progress.from.incarnation) return;
  warm_start_ = std::move(progress);
  (void)cx;
}

void Exchange::handle(runtime::Context& cx, WarmStarted started) {
  if (!learner_ || learner_->address.incarnation != started.from.incarnation) return;
  learner_busy_ = false;
  published_ = started.publication.version;
  oldest_retained_ = started.publication.oldest_retained;
  statistics_.add_publication(started.publication);
  statistics_.running_since = cx.now();
  checksums_[StepId{0}] = started.publication.checksum;
  ledger_.learner_started(StepId{0}, started.from.incarnation);
  ledger_.published(published_);
  note({.kind = "published",
        .version = 0,
        .detail = "warm start of " + std::to_string(started.steps) + " steps"});
  if (!config_.validation.empty())
    start_evaluation(config_.warm_start ? EvaluationKind::kAfterWarmStart : EvaluationKind::kBefore,
                     published_);
  enter(Stage::kRunning, started.reached
                             ? "training"
                             : "training; the warm start ended by max_steps, not by `until`");
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, StepCommitted committed) {
  if (!learner_ || learner_->address.incarnation != committed.from.incarnation) return;
  const Incarnation learner = committed.from.incarnation;
  const bool repeated = ledger_.replaying();
  if (const auto refusal = ledger_.commit(committed.step, learner)) {
    note({.kind = "refused", .step = committed.step.value, .detail = scheduler::name(*refusal)});
    return;
  }
  learner_busy_ = false;
  step_in_flight_.reset();
  statistics_.learner_busy_seconds += seconds(cx.now() - statistics_.step_sent);
  const StepId version{committed.step.value + 1};
  const auto known = checksums_.find(version);
  if (known != checksums_.end() && known->second != committed.checksum)
    return fail("training step " + std::to_string(committed.step.value) +
                " again gave other weights than before; was the binary or the machine changed?");
  checksums_[version] = committed.checksum;
  note({.kind = repeated ? "retrained" : "trained",
        .step = committed.step.value,
        .version = version.value,
        .detail = std::to_string(committed.checksum)});
  if (committed.publication) {
    published_ = std::max(published_, committed.publication->version);
    oldest_retained_ = committed.publication->oldest_retained;
    statistics_.add_publication(*committed.publication);
    if (committed.publication->version > ledger_.budget_state().published)
      ledger_.published(committed.publication->version);
  }
  if (!repeated) after_commit(cx, committed);
  wake(cx);
}

void Exchange::after_commit(runtime::Context& cx, const StepCommitted& committed) {
  const std::int64_t done = committed.step.value + 1;
  const bool last = done == config_.budget.steps_total;
  if (fixed_) fixed_->committed(committed.step);
  statistics_.tokens_trained += committed.report.tokens_trained;
  statistics_.tokens_at_staleness_0 += committed.report.tokens_at_staleness_0;
  statistics_.logprob_diff_max_at_staleness_0 =
      std::max(statistics_.logprob_diff_max_at_staleness_0,
               committed.report.logprob_diff_max_at_staleness_0);
  statistics_.staleness.add(statistics_.staleness_of_step);
  statistics_.add_rate_point(cx.now());
  write_metrics(cx.now(), committed);
  write_samples(committed);
  if (last || (config_.save_freq > 0 && done % config_.save_freq == 0)) {
    checkpoint_awaited_ = done;
    send(links_.learner, learner_->address, SaveCheckpoint{StepId{done}});
  }
  const bool evaluable = !config_.validation.empty() && published_.value == done;
  if (last) {
    if (evaluable) start_evaluation(EvaluationKind::kFinal, published_);
    enter(Stage::kFinishing, "all steps are trained");
  } else if (evaluable && config_.test_freq > 0 && done % config_.test_freq == 0) {
    start_evaluation(EvaluationKind::kPeriodic, published_);
  }
}

void Exchange::handle(runtime::Context& cx, CheckpointSaved saved) {
  if (!learner_ || learner_->address.incarnation != saved.from.incarnation) return;
  statistics_.weights_sha256 = saved.weights_sha256;
  note({.kind = "checkpoint", .step = saved.step.value, .detail = saved.directory});
  if (checkpoint_awaited_ && *checkpoint_awaited_ == saved.step.value) checkpoint_awaited_.reset();
  if (stage_ == Stage::kStarting || stage_ == Stage::kWarmStart) return wake(cx);
  ledger_.durable(saved.step);
  checksums_.erase(checksums_.begin(), checksums_.lower_bound(saved.step));
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (ledger_.find(it->first)) {
      ++it;
      continue;
    }
    if (it->second.header) shelf_.release(it->second.header->payload);
    it = entries_.erase(it);
  }
  wake(cx);
}

void Exchange::handle(runtime::Context& cx, LearnerFailed failed) {
  if (!learner_ || learner_->address.incarnation != failed.from.incarnation) return;
  ending_ = EndJob{JobOutcome::kFailed, failed.from.actor + ": " + failed.message};
  wake(cx);
}

// ---- resume

void Exchange::restore() {
  if (!config_.resume) return;
  auto groups = record_.restore();
  if (!groups) return fail(groups.error().message);
  scheduler::LedgerSnapshot snapshot;
  std::map<std::string, std::int64_t> discarded;
  StepId checkpoint{0};
  for (const RestoredGroup& group : *groups) {
    ++snapshot.counters.issued;
    snapshot.next_group = std::max(snapshot.next_group, GroupId{group.group.value + 1});
    position_next_ = std::max(position_next_, group.position + 1);
    if (group.trained_at) {
      ++snapshot.counters.trained;
      ++snapshot.counters.durable;
      checkpoint = std::max(checkpoint, StepId{group.trained_at->value + 1});
    } else if (group.discarded) {
      for (std::size_t i = 0; i < scheduler::kDiscardReasons; ++i)
        if (group.discard_reason == scheduler::name(static_cast<DiscardReason>(i)))
          ++snapshot.counters.discarded[i];
    } else {
      ++snapshot.counters.live;
      snapshot.records.push_back({.id = group.group});
      Entry entry{.position = group.position};
      if (fixed_)
        entry.slot =
            scheduler::Slot{StepId{group.slot_step}, static_cast<std::int32_t>(group.slot_index),
                            static_cast<std::int32_t>(group.slot_attempt)};
      entry.seed = derive_seed(config_.seed, {group.group.value});
      entries_.emplace(group.group, std::move(entry));
    }
  }
  snapshot.next_step = snapshot.next_commit = checkpoint;
  snapshot.published = PolicyVersion{checkpoint.value};
  ledger_ = scheduler::Ledger(config_.budget, snapshot);
}

}  // namespace tandem::actors
