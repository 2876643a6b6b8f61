// The exchange's conversation with the learner: its incarnations, the warm start, steps and
// checkpoints, and taking up a run that was interrupted.
//
// A learner that comes back stands at a checkpoint. The batches that it trained after that are sent
// again first (LearnerTalk::replay), then training goes on; a checkpoint that was asked for is
// asked for again when the learner is back at the checkpoint's step (EX-C).
#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/exchange/exchange_core.h"

namespace tandem::actors {

using scheduler::LeaseId;

namespace {

std::string text(StepId step) { return std::to_string(step.value); }

std::string skipped_text(std::int64_t step, const StepReport& report) {
  return "step " + std::to_string(step) + " was skipped: its gradient is not finite (norm " +
         std::to_string(report.grad_norm) + ", loss " + std::to_string(report.loss) +
         "); skipped in a row: " + std::to_string(report.skipped_in_row) +
         ", in all: " + std::to_string(report.steps_skipped);
}

}  // namespace

void ExchangeCore::take(LearnerUp up) {
  if (has_ended(up.from) || stage_ == Stage::kEnded) return;
  training_.learner = Worker{.address = {up.from.actor, up.from.incarnation}};
  end_broadcasts_of_learner();
  training_.busy = false;
  training_.save_due = false;
  training_.step.reset();
  training_.replay.clear();
  if (std::exchange(versions_.source, up.source) != up.source)
    for (auto& [name, rollout] : workers_.rollouts)
      if (rollout.announced >= kInitialWeights) announce(rollout, rollout.announced);
  if (stage_ == Stage::kStarting || stage_ == Stage::kWarmStart)
    meet_before_training(up);
  else
    meet_again(up);
  wake();
}

void ExchangeCore::meet_before_training(const LearnerUp& up) {
  const StepId checkpoint = up.checkpoint.value_or(StepId{0});
  stage_ = Stage::kStarting;
  if (checkpoint.value > config_.budget.steps_total)
    return fail("the newest checkpoint is of step " + text(checkpoint) +
                " and the job ends at step " + std::to_string(config_.budget.steps_total));
  if (config_.resume && !training_.restored) {
    training_.restoring = RestoringRun{.checkpoint = checkpoint, .history = {}, .groups = {}};
    return effects_.push_back(ReadHistory{});
  }
  ask_to_publish(checkpoint);
}

void ExchangeCore::ask_to_publish(StepId checkpoint) {
  if (ending_.why || !training_.learner) return;
  if (checkpoint != flow_.ledger.next_commit())
    return fail("the newest checkpoint is of step " + text(checkpoint) +
                " but this run is at step " + text(flow_.ledger.next_commit()));
  PolicyVersion retain = kInitialWeights;
  if (training_.restored)
    retain = flow_.fixed ? scheduler::slot_version(config_.budget, checkpoint)
                         : PolicyVersion{checkpoint.value};
  tell_learner(PublishInitial{retain});
  training_.busy = true;
}

void ExchangeCore::meet_again(const LearnerUp& up) {
  const StepId done = flow_.ledger.next_commit();
  if (!up.checkpoint)
    return fail("the learner came back without any checkpoint: " + text(done) + " steps are lost");
  if (*up.checkpoint > done || *up.checkpoint < training_.durable)
    return fail("the learner came back with a checkpoint of step " + text(*up.checkpoint) +
                ", but the batches of steps " + text(training_.durable) + " to " + text(done) +
                " are those that are kept");
  const auto resend = flow_.ledger.learner_started(*up.checkpoint, up.from.incarnation);
  training_.replay.assign(resend.begin(), resend.end());
  note({.kind = "learner_restarted",
        .holder = up.from.actor + "#" + std::to_string(up.from.incarnation.value),
        .step = up.checkpoint->value,
        .detail = std::to_string(resend.size()) + " batches to train again"});
  if (training_.checkpoint_awaited == up.checkpoint->value) ask_checkpoint();
}

// A checkpoint is worth nothing without the rows that tell which groups it covers: those are on the
// disk first.
void ExchangeCore::ask_checkpoint() {
  durability_ = Durability::kPowerCut;
  tell_learner(SaveCheckpoint{StepId{*training_.checkpoint_awaited}});
}

void ExchangeCore::take(Published published) {
  if (!training_.learner || training_.learner->address.incarnation != published.from.incarnation)
    return;
  if (const auto why = misfit(published)) return refuse(published.from, *why);
  training_.busy = false;
  versions_.published = std::max(versions_.published, published.publication.version);
  take_publication(published.publication);
  if (versions_.published == kInitialWeights) {
    if (config_.warm_start) {
      start_evaluation(EvaluationKind::kBefore, kInitialWeights);
      enter(Stage::kWarmStart, "warm start");
    }
    tell_learner(WarmStart{});
    training_.busy = true;
    return wake();
  }
  flow_.ledger.published(versions_.published);
  (void)flow_.ledger.learner_started(flow_.ledger.next_commit(), published.from.incarnation);
  training_.durable = flow_.ledger.next_commit();
  statistics_.running_since = now_;
  training_.checksums[flow_.ledger.next_commit()] = published.publication.checksum;
  if (versions_.published == PolicyVersion{0})
    start_evaluation(config_.warm_start ? EvaluationKind::kAfterWarmStart : EvaluationKind::kBefore,
                     versions_.published);
  enter(Stage::kRunning, "resumed at step " + text(flow_.ledger.next_commit()));
  if (flow_.ledger.next_commit().value == config_.budget.steps_total) {
    training_.checkpoint_awaited = flow_.ledger.next_commit().value;
    ask_checkpoint();
    finish_training();
  }
  wake();
}

void ExchangeCore::take(WarmStartProgress progress) {
  if (!training_.learner || training_.learner->address.incarnation != progress.from.incarnation)
    return;
  const std::uint64_t known =
      std::exchange(statistics_.trained.steps_skipped, progress.steps_skipped);
  training_.warm_start = std::move(progress);
  if (training_.warm_start.steps_skipped <= known) return;
  notify(ExchangeEvent{config_.job, config_.job,
                       "the warm start has skipped steps whose gradient is not finite: " +
                           std::to_string(training_.warm_start.steps_skipped) + " by step " +
                           std::to_string(training_.warm_start.step)});
  wake();
}

void ExchangeCore::take(WarmStarted started) {
  if (!training_.learner || training_.learner->address.incarnation != started.from.incarnation)
    return;
  if (const auto why = misfit(started)) return refuse(started.from, *why);
  training_.busy = false;
  versions_.published = started.publication.version;
  take_publication(started.publication);
  statistics_.running_since = now_;
  training_.checksums[StepId{0}] = started.publication.checksum;
  (void)flow_.ledger.learner_started(StepId{0}, started.from.incarnation);
  flow_.ledger.published(versions_.published);
  note({.kind = "published",
        .version = 0,
        .detail = "warm start of " + std::to_string(started.steps) + " steps"});
  note_totals(now_, started.publication);
  start_evaluation(config_.warm_start ? EvaluationKind::kAfterWarmStart : EvaluationKind::kBefore,
                   versions_.published);
  enter(Stage::kRunning, started.reached
                             ? "training"
                             : "training; the warm start ended by max_steps, not by `until`");
  wake();
}

void ExchangeCore::take(StepCommitted committed) {
  if (!training_.learner || training_.learner->address.incarnation != committed.from.incarnation)
    return;
  if (const auto why = misfit(committed)) return refuse(committed.from, *why);
  const bool repeated = flow_.ledger.replaying();
  if (const auto refusal = flow_.ledger.commit(committed.step, committed.from.incarnation)) {
    note({.kind = "refused", .step = committed.step.value, .detail = scheduler::name(*refusal)});
    return wake();
  }
  training_.busy = false;
  training_.step.reset();
  if (statistics_.running_since)
    statistics_.work.learner_busy_seconds += seconds(now_ - statistics_.step_sent);
  const StepId version{committed.step.value + 1};
  const auto known = training_.checksums.find(version);
  if (known != training_.checksums.end() && known->second != committed.checksum)
    return fail("training step " + text(committed.step) +
                " again gave other weights than before; was the binary or the machine "
                "changed?");
  training_.checksums[version] = committed.checksum;
  if (!repeated)
    for (const GroupId group : training_.batch)
      note({.kind = "trained",
            .group = static_cast<std::int64_t>(group.value),
            .step = committed.step.value,
            .version = version.value});
  note({.kind = repeated ? "retrained" : "committed",
        .step = committed.step.value,
        .version = version.value,
        .detail = std::to_string(committed.checksum)});
  if (committed.publication) {
    versions_.published = std::max(versions_.published, committed.publication->version);
    take_publication(*committed.publication);
    flow_.ledger.published(versions_.published);
  }
  if (!repeated) after_commit(committed);
  // Asked for by the next Decide: by then it is known whether the figures of the step were written.
  training_.save_due = training_.checkpoint_awaited == version.value;
  wake();
}

void ExchangeCore::after_commit(const StepCommitted& committed) {
  const std::int64_t done = committed.step.value + 1;
  const bool last = done == config_.budget.steps_total;
  if (flow_.fixed) flow_.fixed->committed(committed.step);
  TrainedTotals& trained = statistics_.trained;
  trained.tokens += committed.report.tokens_trained;
  trained.tokens_at_staleness_0 += committed.report.tokens_at_staleness_0;
  const double diff = committed.report.logprob_diff_max_at_staleness_0;
  if (std::isfinite(diff))
    trained.logprob_diff_max_at_staleness_0 =
        std::max(trained.logprob_diff_max_at_staleness_0, diff);
  trained.steps_skipped = committed.report.steps_skipped;
  if (committed.report.skipped_in_row > 0)
    notify(ExchangeEvent{config_.job, config_.job, skipped_text(done, committed.report)});
  trained.staleness.add(statistics_.staleness_of_step);
  note_totals(now_, committed.publication);
  statistics_.add_rate_point(now_);
  write_metrics(now_, committed);
  write_samples(committed);
  if (last || (config_.save_freq > 0 && done % config_.save_freq == 0))
    training_.checkpoint_awaited = done;
  if (last)
    finish_training();
  else if (versions_.published.value == done && config_.test_freq > 0 &&
           done % config_.test_freq == 0)
    start_evaluation(EvaluationKind::kPeriodic, versions_.published);
}

void ExchangeCore::finish_training() {
  start_evaluation(EvaluationKind::kFinal, versions_.published);
  enter(Stage::kFinishing, "all steps are trained");
}

void ExchangeCore::take(CheckpointSaved saved) {
  if (!training_.learner || training_.learner->address.incarnation != saved.from.incarnation)
    return;
  if (const auto why = misfit(saved)) return refuse(saved.from, *why);
  statistics_.weights_sha256 = saved.weights_sha256;
  note({.kind = "checkpoint", .step = saved.step.value, .detail = saved.directory});
  if (training_.checkpoint_awaited == saved.step.value) training_.checkpoint_awaited.reset();
  wake();
  if (saved.step <= training_.durable) return;
  flow_.ledger.durable(saved.step);
  training_.durable = saved.step;
  training_.checksums.erase(training_.checksums.begin(),
                            training_.checksums.lower_bound(saved.step));
  for (auto it = flow_.entries.begin(); it != flow_.entries.end();) {
    if (flow_.ledger.find(it->first)) {
      ++it;
      continue;
    }
    if (it->second.header) release(it->second.header->payload);
    it = flow_.entries.erase(it);
  }
}

// Also of a learner that could not come up: LearnerUp never came.
void ExchangeCore::take(LearnerFailed failed) {
  if (has_ended(failed.from)) return;
  if (training_.learner && training_.learner->address.incarnation != failed.from.incarnation)
    return;
  fail(failed.from.actor + ": " + failed.message);
}

// ---- resume

// Why these groups are not those of a run of this job; nothing where they may be.
ExchangeCore::Misfit ExchangeCore::misfit(const std::vector<RestoredGroup>& groups,
                                          StepId at) const {
  std::int64_t trained = 0;
  for (const RestoredGroup& group : groups) {
    trained += group.trained_at.has_value();
    const bool slot_ahead = group.slot && group.slot->step >= at;
    if (flow_.fixed && !slot_ahead && !group.trained_at && !group.discarded)
      return "the journal was not written under async.schedule: fixed_lag";
  }
  const std::int64_t due = at.value * config_.budget.groups_per_step;
  if (trained == due) return std::nullopt;
  return "the journal holds " + std::to_string(trained) + " groups trained before checkpoint " +
         text(at) + ", not " + std::to_string(due);
}

// A run that is refused here stays as it was.
void ExchangeCore::take(HistoryRead read) {
  if (!training_.restoring) return;
  training_.restoring->history = std::move(read.history);
  training_.restoring->groups = training_.restoring->history.at(training_.restoring->checkpoint);
  if (const auto why = misfit(training_.restoring->groups, training_.restoring->checkpoint)) {
    training_.restoring.reset();
    return fail(*why);
  }
  effects_.push_back(
      TakeUpRun{.job_yaml = config_.job_yaml, .checkpoint = training_.restoring->checkpoint});
}

void ExchangeCore::take(RunTakenUp) {
  if (!training_.restoring) return;
  const RestoringRun from = *std::exchange(training_.restoring, std::nullopt);
  restore(from.history, from.groups, from.checkpoint);
  ask_to_publish(from.checkpoint);
}

void ExchangeCore::restore(const GroupHistory& history, const std::vector<RestoredGroup>& groups,
                           StepId checkpoint) {
  training_.restored = true;
  const auto started = statistics_.started;
  statistics_ = history.statistics(checkpoint, config_.budget.steps_total);
  statistics_.started = started;
  scheduler::LedgerSnapshot snapshot{.next_group = GroupId{1}, .next_lease = LeaseId{1}};
  snapshot.counters.retrained = history.retrained(checkpoint, config_.budget.groups_per_step);
  if (flow_.fixed) flow_.fixed.emplace(config_.budget, checkpoint);
  note({.kind = "resumed",
        .step = checkpoint.value,
        .detail = std::to_string(groups.size()) + " groups"});
  for (const RestoredGroup& group : groups) {
    ++snapshot.counters.issued;
    snapshot.next_group = GroupId{group.group.value + 1};
    flow_.position_next = std::max(flow_.position_next, group.position + 1);
    if (group.trained_at) {
      ++snapshot.counters.trained;
      ++snapshot.counters.durable;
      continue;
    }
    const bool slot_ahead = group.slot && group.slot->step >= checkpoint;
    if (flow_.fixed && slot_ahead) flow_.fixed->issued(*group.slot, group.group);
    if (group.discarded) {
      ++snapshot.counters.discarded[static_cast<std::size_t>(*group.discarded)];
      if (flow_.fixed && slot_ahead) flow_.fixed->discarded(group.group);
      continue;
    }
    ++snapshot.counters.live;
    snapshot.records.push_back({.id = group.group});
    open_entry(group.group, {.position = group.position, .slot = group.slot, .admitted = now_});
  }
  snapshot.next_step = snapshot.next_commit = snapshot.replay_next = checkpoint;
  snapshot.published = PolicyVersion{checkpoint.value};
  flow_.ledger = scheduler::Ledger(config_.budget, snapshot);
}

}  // namespace tandem::actors
