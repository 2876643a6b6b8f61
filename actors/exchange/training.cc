// Groups without variance, failures and late answers are gone when a batch is formed, so a batch is
// only a choice: the earliest due groups, or fixed_lag's slots in their order. A learner that came
// back at an earlier checkpoint repeats the batches since then, in order, before a new one is
// formed; each must end in the same weights as before.
#include "actors/exchange/training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/exchange/checkpoints.h"
#include "actors/exchange/checks.h"
#include "actors/exchange/drain.h"
#include "actors/exchange/evaluating.h"
#include "actors/exchange/fleet_view.h"
#include "actors/exchange/publications.h"
#include "actors/exchange/run_cost.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/run_report.h"
#include "actors/exchange/step_figures.h"
#include "actors/exchange/work_totals.h"

namespace tandem::exchange {

namespace {

std::string skipped_text(std::int64_t step, const messages::StepReport& report) {
  return "step " + std::to_string(step) + " was skipped: its gradient is not finite (norm " +
         std::to_string(report.grad_norm) + ", loss " + std::to_string(report.loss) +
         "); skipped in a row: " + std::to_string(report.skipped_in_row) +
         ", in all: " + std::to_string(report.steps_skipped);
}

void tell_step(Turn& turn, StepId step, const std::vector<GroupId>& batch) {
  messages::TrainStep train{
      .step = step, .publish = publishes(turn.view(), step), .retain = oldest_needed(turn.view())};
  for (const GroupId group : batch) {
    const GroupFacts& facts = turn.facts.flow.entries.at(group);
    train.groups.push_back(
        {.group = group, .attempt = 0, .payload = facts.header->payload, .rewards = facts.rewards});
  }
  if (const auto committed = std::exchange(turn.seen.learner.committed, std::nullopt))
    turn.seen.fleet.delayed(FleetDelay::kTurnaround, turn.now - *committed);
  turn.seen.statistics.step_sent = turn.now;
  turn.tell_learner(std::move(train));
}

void send_step(Turn& turn, StepId step, const std::vector<GroupId>& batch) {
  turn.record(LearnerAsked{LearnerTask::kTrain, step});
  tell_step(turn, step, batch);
}

// The batch that may be formed now; empty where none may be.
std::vector<GroupId> next_batch(const RunView& view, StepId step) {
  const GroupFlow& flow = view.facts.flow;
  if (flow.fixed) return flow.fixed->batch(step).value_or(std::vector<GroupId>{});
  if (scheduler::form_verdict(view.config.budget, flow.ledger.budget_state()) !=
      scheduler::FormVerdict::kForm)
    return {};
  return flow.ledger.earliest_due_batch();
}

void note_batch(Turn& turn, StepId step, const std::vector<GroupId>& batch) {
  std::vector<const GroupFacts*> groups;
  for (const GroupId group : batch) groups.push_back(&turn.facts.flow.entries.at(group));
  const BatchFigures& figures = turn.seen.statistics.batch =
      figures_of_batch(step, groups, turn.config.filter_groups);
  // Told when a batch has such groups and the batch before had none.
  const bool told_before = std::exchange(turn.seen.filter_keeps, figures.kept > 0);
  if (figures.kept > 0 && !told_before)
    turn.say(kept_text(turn.view()), messages::EventLevel::kWarning);
}

void note_trained(Turn& turn, const messages::StepReport& report) {
  TrainedTotals& trained = turn.seen.statistics.trained;
  trained.tokens += report.tokens_trained;
  trained.tokens_at_staleness_0 += report.tokens_at_staleness_0;
  const double diff = report.logprob_diff_max_at_staleness_0;
  if (std::isfinite(diff))
    trained.logprob_diff_max_at_staleness_0 =
        std::max(trained.logprob_diff_max_at_staleness_0, diff);
  trained.steps_skipped = report.steps_skipped;
  trained.steps_without_gradient += report.updates_without_gradient;
  trained.rewards_failed += turn.seen.statistics.batch.rewards_failed;
  trained.staleness.add(turn.seen.statistics.batch.staleness);
  turn.seen.statistics.groups_kept += turn.seen.statistics.batch.kept;
  turn.seen.statistics.recorded_bytes = report.recorded_bytes;
}

// Tells once that batches have gone, and once that those that are left follow no checkpoint.
void watch_record(Turn& turn, const messages::StepReport& report) {
  if (!report.recorded_from) return;
  LearnerSeen& seen = turn.seen.learner;
  const std::string from = std::to_string(report.recorded_from->value + 1);
  if (!std::exchange(seen.said_batches_gone, true))
    turn.say(
        "replay/ has the most that it may (retention.replay_bytes): the oldest batches go, and "
        "those from step " +
            from + " on are left",
        messages::EventLevel::kWarning);
  if (*report.recorded_from > turn.facts.learner.durable &&
      !std::exchange(seen.said_no_replay, true))
    turn.say("no replay can begin now: replay/ has the batches from step " + from +
                 " on, and no checkpoint is as new; a larger retention.replay_bytes, or more "
                 "checkpoints, mends it",
             messages::EventLevel::kWarning);
}

// Tells a collapse of the policy, which costs a run more than any of its steps.
void watch_for_collapse(Turn& turn, std::int64_t step, const messages::StepReport& report) {
  const Spread& rewards = turn.seen.statistics.batch.rewards;
  const auto collapse = turn.seen.collapse.take({.step = step,
                                                 .groups = turn.config.budget.groups_per_step,
                                                 .reward_mean = rewards.mean,
                                                 .reward_std = rewards.std,
                                                 .entropy = report.entropy.value_or(NAN),
                                                 .ppo_kl = report.ppo_kl.value_or(NAN)});
  if (collapse) turn.say(text(*collapse), messages::EventLevel::kWarning);
}

// What was trained since cannot be had again, and the weights of now are as good. Groups that were
// generated by versions of the lost lineage keep their dates: their staleness is bounded as ever,
// and the loss compares with the log-probabilities of the weights that sampled them.
void begin_lineage(Turn& turn, const messages::StepCommitted& committed, std::uint64_t before) {
  turn.record(LineageBegan{committed.from, committed.step, before, committed.checksum});
  turn.seen.statistics.lineages.push_back(committed.step);
  turn.say(lineage_text(turn.view()),
           turn.config.fixed_lag ? messages::EventLevel::kError : messages::EventLevel::kWarning);
}

// Measures of the fleet go to the controller once per window.
void tell_fleet(Turn& turn, const messages::StepReport& report) {
  const std::int64_t window = turn.config.fleet_window_steps;
  if (window == 0 || !turn.seen.fleet.ends_window(window)) return;
  if (auto rates = turn.seen.fleet.rates(window)) {
    const double step_seconds = rates->seconds / static_cast<double>(rates->steps);
    const double starved = rates->waits[static_cast<std::size_t>(scheduler::TrainerWait::kSamples)];
    turn.notify(messages::FleetMeasured{
        .job = turn.config.job,
        .rates = *std::move(rates),
        .overlaps = turn.config.budget.max_staleness > 0,
        .skipped_in_row = report.skipped_in_row,
        .evaluation_fraction = turn.seen.fleet.evaluation_fraction(window),
        .starved_fraction = starved / step_seconds,
        .sequences_max = scheduler::sequence_limit(work_limits_of(turn.config)).now});
  }
}

// Carries out the consequences of a step's first commit: figures, the next checkpoint, the next
// evaluation.
void after_commit(Turn& turn, const messages::StepCommitted& committed,
                  const std::vector<GroupId>& batch) {
  const std::int64_t done = committed.step.value + 1;
  const bool last = done == turn.config.budget.steps_total;
  note_trained(turn, committed.report);
  watch_record(turn, committed.report);
  if (committed.report.skipped_in_row > 0)
    turn.say(skipped_text(done, committed.report), messages::EventLevel::kWarning);
  watch_for_collapse(turn, done, committed.report);
  note_totals(turn, committed.publication);
  turn.seen.statistics.add_rate_point(turn.now);
  turn.seen.fleet.committed(committed.report.tokens_trained,
                            std::ssize(batch) * std::int64_t{turn.config.n}, turn.now);
  note_cost(turn);
  write_metrics(turn, committed, batch);
  tell_fleet(turn, committed.report);
  write_samples(turn, committed, batch);
  for (const GroupId group : batch) turn.seen.notes.erase(group);
  const PolicyVersion published = turn.facts.versions.published;
  const bool evaluates = !last && published.value == done && falls_due(turn.config.test_freq, done);
  // An evaluated version may be the best one, and has a checkpoint then.
  if (last || save_is_due(turn.view(), StepId{done}) ||
      (evaluates && !turn.config.best.key.empty()))
    turn.record(CheckpointAsked{StepId{done}});
  if (last) finish_training(turn);
  if (evaluates) start_evaluation(turn, EvaluationKind::kPeriodic, published);
}

}  // namespace

void form(Turn& turn) {
  const RunFacts& facts = turn.facts;
  const scheduler::Ledger& ledger = facts.flow.ledger;
  if (!facts.learner.who || turn.seen.learner.away || facts.learner.owed ||
      learner_drains(turn.view()))
    return;
  if (ledger.replaying()) {
    const StepId step = ledger.replay_next();
    if (evaluation_in_the_way(turn.view(), step)) return;
    return send_step(turn, step, std::vector(*ledger.batch(step)));
  }
  if (facts.stage != RunStage::kRunning || facts.end.asked) return;
  const StepId step = ledger.budget_state().next_step;
  if (evaluation_in_the_way(turn.view(), step)) return;
  const std::vector<GroupId> batch = next_batch(turn.view(), step);
  if (batch.empty()) return;
  note_batch(turn, step, batch);
  turn.record(BatchFormed{step, batch});
  send_step(turn, step, batch);
}

void send_again(Turn& turn) {
  const StepId step = *turn.facts.learner.training;
  tell_step(turn, step, std::vector(*turn.facts.flow.ledger.batch(step)));
}

void note_formed_batch(Turn& turn) {
  const auto& step = turn.facts.learner.training;
  if (step && !turn.facts.flow.ledger.replaying())
    note_batch(turn, *step, std::vector(*turn.facts.flow.ledger.batch(*step)));
}

// The answer that the exchange before has journalled comes once more (LearnerBack).
bool is_known(const RunFacts& facts, const messages::StepCommitted& committed) {
  const auto known = facts.learner.checksums.find(StepId{committed.step.value + 1});
  return committed.step < facts.flow.ledger.replay_next() &&
         known != facts.learner.checksums.end() && known->second == committed.checksum;
}

void take(Turn& turn, const messages::StepCommitted& committed) {
  const LearnerFacts& learner = turn.facts.learner;
  const scheduler::Ledger& ledger = turn.facts.flow.ledger;
  if (!learner.who || learner.who->incarnation != committed.from.incarnation) return;
  if (is_known(turn.facts, committed)) {
    if (committed.publication) note_probe(turn, committed.publication->version, committed.probe);
    return;
  }
  if (const auto why = misfit(turn.view(), committed)) return refuse(turn, committed.from, *why);
  const Incarnation sender = committed.from.incarnation;
  if (const auto refusal = ledger.refusal_of_commit(committed.step, sender)) {
    turn.record(CommitRefused{committed.step, sender, *refusal});
    return turn.wake();
  }
  RunStatistics& statistics = turn.seen.statistics;
  if (statistics.running_since)
    statistics.work.learner_busy_seconds += seconds(turn.now - statistics.step_sent);
  turn.seen.fleet.trained(turn.now - statistics.step_sent);
  const StepId version{committed.step.value + 1};
  const auto known = learner.checksums.find(version);
  if (known != learner.checksums.end() && known->second != committed.checksum)
    begin_lineage(turn, committed, known->second);
  const bool repeated = ledger.replaying();
  const std::vector<GroupId> batch =
      repeated ? std::vector<GroupId>{} : *ledger.batch(committed.step);
  turn.record(StepTrained{.step = committed.step,
                          .learner = sender,
                          .checksum = committed.checksum,
                          .groups = batch,
                          .publication = committed.publication});
  if (committed.publication) note_publication(turn, *committed.publication, committed.probe);
  if (!repeated) after_commit(turn, committed, batch);
  // The next Decide asks for the checkpoint: by then it is known whether the figures of the step
  // were written.
  turn.seen.learner.save_due = learner.checkpoint_awaited == version;
  turn.seen.learner.committed = turn.seen.progressed = turn.now;
  turn.wake();
}

void finish_training(Turn& turn) {
  start_evaluation(turn, EvaluationKind::kFinal, turn.facts.versions.published);
  enter(turn, RunStage::kFinishing, "all steps are trained");
}

}  // namespace tandem::exchange
