// The run as people and scripts see it: status, waits, metrics.jsonl, samples.jsonl, result.json.
// Figures are taken from the ledger and the run's statistics when somebody asks, or a step is
// committed; nothing here changes a decision.
#include <algorithm>
#include <iterator>

#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/exchange_core.h"
#include "runtime/base/json.h"

namespace tandem::actors {

using scheduler::GroupState;

namespace {

const char* name(JobOutcome outcome) {
  switch (outcome) {
    case JobOutcome::kSucceeded:
      return "Succeeded";
    case JobOutcome::kFailed:
      return "Failed";
    case JobOutcome::kCancelled:
      return "Cancelled";
  }
  return "";
}

nlohmann::json result_of_evaluations(const RunStatistics& statistics) {
  nlohmann::json result{{"counts", nlohmann::json::object()},
                        {"figures", nlohmann::json::object()},
                        {"failed", statistics.evaluations_failed}};
  for (const char* kind : {"before", "after_warm_start", "final"}) {
    result[kind] = nlohmann::json();
    const auto it = statistics.evaluations.find(kind);
    if (it == statistics.evaluations.end()) continue;
    const RewardFigures& all = it->second.all;
    if (all.mean) result[kind] = *all.mean;
    result["counts"][kind] = {{"scored", all.scored}, {"failed", all.failed}};
    result["figures"][kind] = figures_json(it->second);
  }
  if (!statistics.evaluation_failure.empty()) result["failure"] = statistics.evaluation_failure;
  return result;
}

// In policy versions: how far the oldest sample that waits for training is behind the newest
// commit. Of the groups that wait alone: `entries` also has those since the last checkpoint.
std::int64_t oldest_sample_age(const scheduler::Ledger& ledger, const auto& entries) {
  const std::int64_t next = ledger.next_commit().value;
  std::int64_t age = 0;
  for (const auto state : {GroupState::kGenerated, GroupState::kScoring, GroupState::kScored}) {
    for (const auto& [due, group] : ledger.queue(state)) {
      const auto entry = entries.find(group);
      if (entry == entries.end() || !entry->second.header) continue;
      for (const TrajectoryHeader& trajectory : entry->second.header->trajectories)
        age = std::max(age, next - static_cast<std::int64_t>(trajectory.oldest.value));
    }
  }
  return age;
}

}  // namespace

// The totals with this incarnation of the run and the rollouts that are up, up to now.
WorkTotals ExchangeCore::work(Time now) const {
  WorkTotals work = statistics_.work;
  if (statistics_.started) work.wall_seconds += seconds(now - *statistics_.started);
  if (statistics_.running_since) work.running_seconds += seconds(now - *statistics_.running_since);
  for (const auto& [name, worker] : workers_.rollouts) {
    work.rollout_busy_seconds += worker.stats.busy_seconds;
    work.rollout_actor_seconds += lifetime(worker, now);
  }
  return work;
}

double ExchangeCore::rollout_idle_fraction(Time now) const {
  const WorkTotals total = work(now);
  if (total.rollout_actor_seconds <= 0) return 0;
  return std::clamp(1 - total.rollout_busy_seconds / total.rollout_actor_seconds, 0.0, 1.0);
}

void ExchangeCore::note(JournalEvent event) { events_.push_back(std::move(event)); }

// For a later incarnation of the run.
void ExchangeCore::note_totals(Time now, const std::optional<Publication>& publication) {
  RunTotals totals{.trained = statistics_.trained, .work = work(now), .publish_seconds = {}};
  if (publication) totals.publish_seconds = publication->seconds;
  note({.kind = "totals", .step = flow_.ledger.next_commit().value, .detail = to_text(totals)});
}

ExchangeReport ExchangeCore::report(Time now) const {
  ExchangeReport report{.status = status(now), .last_step = statistics_.last_step};
  const auto counters = flow_.ledger.counters();
  report.ledger = {.issued = counters.issued, .trained = counters.trained, .live = counters.live};
  for (std::size_t i = 0; i < scheduler::kDiscardReasons; ++i)
    if (counters.discarded[i] > 0)
      report.ledger.discarded.emplace_back(
          scheduler::name(static_cast<scheduler::DiscardReason>(i)), counters.discarded[i]);
  for (const auto& [actor, worker] : workers_.rollouts) {
    const auto held = static_cast<std::int64_t>(worker.holding.size()) * config_.n;
    report.loads.push_back(
        {.actor = actor,
         .policy_version = worker.installed.value_or(kInitialWeights).value,
         .load = worker.draining ? std::to_string(held) + " left"
                                 : std::to_string(held) + "/" + std::to_string(worker.capacity),
         .engine = worker.stats});
  }
  for (const auto& [actor, worker] : workers_.rewards)
    report.loads.push_back(
        {.actor = actor,
         .policy_version = versions_.published.value,
         .load = std::to_string(worker.holding.size()) + "/" + std::to_string(worker.capacity)});
  if (training_.learner)
    report.loads.push_back(
        {.actor = training_.learner->address.name,
         .policy_version = flow_.ledger.next_commit().value,
         .load = training_.step ? "step " + std::to_string(training_.step->value) : "idle"});
  return report;
}

std::vector<GroupView> ExchangeCore::groups(Time now) const {
  std::vector<GroupView> groups;
  for (const auto& [group, entry] : flow_.entries) {
    const auto* record = flow_.ledger.find(group);
    if (!record) continue;
    GroupView view{.group = group.value,
                   .state = scheduler::name(record->state),
                   .age_s = seconds(now - entry.admitted)};
    if (record->due) view.due = record->due->value;
    if (record->lease) {
      view.attempt = record->lease->id.value;
      for (const auto* role : {&workers_.rollouts, &workers_.rewards})
        for (const auto& [actor, worker] : *role)
          if (worker.address.incarnation == record->lease->holder) view.holder = actor;
    }
    groups.push_back(std::move(view));
  }
  return groups;
}

JobStatus ExchangeCore::status(Time now) const {
  const auto& points = statistics_.rate_points;
  JobStatus status{.step = flow_.ledger.next_commit().value,
                   .total_steps = config_.budget.steps_total,
                   .policy_version = versions_.published.value,
                   .reward_mean = statistics_.reward_mean_of_step,
                   .staleness_bound = config_.budget.max_staleness,
                   .staleness_max = statistics_.trained.staleness.max(),
                   .staleness_mean = statistics_.trained.staleness.mean(),
                   .queue_depth = flow_.ledger.count(GroupState::kGenerated) +
                                  flow_.ledger.count(GroupState::kScoring) +
                                  flow_.ledger.count(GroupState::kScored),
                   .warm_start_step = training_.warm_start.step,
                   .warm_start_steps_max = training_.warm_start.steps_max,
                   .warm_start_metric = training_.warm_start.metric,
                   .waits = waits(now),
                   .troubles = workers_.troubles.shown(now),
                   .steps_skipped = statistics_.trained.steps_skipped};
  if (versions_.broadcasts) {
    status.broadcasts = versions_.broadcasts_started;
    status.broadcast_failures = versions_.broadcasts->failures();
  }
  if (const auto it = statistics_.evaluations.find("last"); it != statistics_.evaluations.end())
    status.eval = it->second;
  if (const WorkTotals total = work(now); total.running_seconds > 0) {
    status.trainer_idle_fraction =
        std::clamp(1 - total.learner_busy_seconds / total.running_seconds, 0.0, 1.0);
    if (status.step > 0)
      status.eta_s = total.running_seconds / static_cast<double>(status.step) *
                     static_cast<double>(status.total_steps - status.step);
  }
  if (points.size() > 1) {
    const double span = seconds(points.back().time - points.front().time);
    if (span > 0) {
      status.tokens_generated_per_s =
          static_cast<double>(points.back().generated - points.front().generated) / span;
      status.tokens_trained_per_s =
          static_cast<double>(points.back().trained - points.front().trained) / span;
    }
  }
  return status;
}

std::vector<Wait> ExchangeCore::waits(Time now) const {
  std::vector<Wait> waits;
  if (stage_ == Stage::kEnded) return waits;
  const double since = statistics_.started ? seconds(now - *statistics_.started) : 0;
  const auto add = [&](std::string who, std::string what, double since_s, std::string detail) {
    waits.push_back({.who = std::move(who),
                     .waits_for = std::move(what),
                     .since_s = since_s,
                     .detail = std::move(detail)});
  };
  const auto since_end = [&](const std::optional<Time>& end) {
    return end ? seconds(now - *end) : since;
  };
  if (!training_.learner)
    add(config_.job, "the learner to start", since_end(training_.none_since),
        "the controller starts it");
  if (workers_.rollouts.empty())
    add(config_.job, "a rollout actor", since_end(workers_.no_rollout_since), "none is up");
  if (workers_.rewards.empty())
    add(config_.job, "a reward actor", since_end(workers_.no_reward_since), "none is up");
  for (const TroubleView& view : workers_.troubles.shown(now))
    add(view.trouble.from.actor, "a reward program that works", view.since_s, text(view.trouble));
  if (stage_ == Stage::kWarmStart)
    add(config_.job, "the warm start", since,
        "step " + std::to_string(training_.warm_start.step) + " of at most " +
            std::to_string(training_.warm_start.steps_max));
  if (stage_ == Stage::kFinishing && training_.checkpoint_awaited)
    add(config_.job, "checkpoint " + std::to_string(*training_.checkpoint_awaited), 0,
        "the learner writes it");
  for (const Evaluation& evaluation : evaluations_.running)
    add(config_.job, std::string("evaluation ") + actors::name(evaluation.kind()), 0,
        "version " + std::to_string(evaluation.version().value));
  if (versions_.broadcasts)
    std::ranges::move(versions_.broadcasts->waits(now), std::back_inserter(waits));
  if (stage_ != Stage::kRunning) return waits;
  if (const auto& last = statistics_.last_step; last && last->skipped_in_row > 0)
    add(config_.job, "a finite gradient", 0,
        "steps skipped in a row: " + std::to_string(last->skipped_in_row) +
            " (learner.max_nonfinite_steps)");
  const double idle =
      seconds(now - std::max(statistics_.step_sent, statistics_.running_since.value_or(now)));
  if (training_.learner && !training_.busy) {
    const std::int64_t scored = flow_.ledger.count(GroupState::kScored);
    std::string what = std::to_string(scored) + " of " +
                       std::to_string(config_.budget.groups_per_step) + " scored groups for step " +
                       std::to_string(flow_.ledger.budget_state().next_step.value);
    std::string detail =
        scheduler::name(scheduler::form_verdict(config_.budget, flow_.ledger.budget_state()));
    add(training_.learner->address.name, std::move(what), idle, std::move(detail));
  } else if (training_.learner && training_.step) {
    add(config_.job,
        training_.learner->address.name + " to train step " + std::to_string(training_.step->value),
        idle,
        training_.replay.empty()
            ? ""
            : std::to_string(training_.replay.size()) + " repeated batches follow");
  }
  for (const auto& [actor, worker] : workers_.rollouts)
    if (worker.holding.empty()) {
      const auto verdict = scheduler::admit_verdict(config_.budget, flow_.ledger.budget_state());
      add(actor, "groups to generate", 0,
          worker.installed ? std::string("admission: ") + scheduler::name(verdict)
                           : "it installs version " + std::to_string(worker.announced.value));
    }
  return waits;
}

void ExchangeCore::write_metrics(Time now, const StepCommitted& committed) {
  const StepReport& report = committed.report;
  const StalenessCount& staleness = statistics_.staleness_of_step;
  const auto counters = flow_.ledger.counters();
  const JobStatus job = status(now);
  StepFigures& figures = statistics_.last_step.emplace(
      StepFigures{.reward_mean = statistics_.reward_mean_of_step,
                  .loss = report.loss,
                  .ppo_kl = report.ppo_kl,
                  .entropy = report.entropy,
                  .grad_norm = report.grad_norm,
                  .lr = report.lr,
                  .rollout_idle_fraction = rollout_idle_fraction(now),
                  .oldest_sample_age_steps = oldest_sample_age(flow_.ledger, flow_.entries),
                  .skipped_in_row = report.skipped_in_row});
  if (report.tokens_at_staleness_0 > 0)
    figures.logprob_diff_max_at_staleness_0 = report.logprob_diff_max_at_staleness_0;
  nlohmann::json line{
      {"step", committed.step.value + 1},
      {"critic/rewards/mean", figures.reward_mean},
      {"response_length/mean", statistics_.completion_tokens_mean},
      {"response_length/max", statistics_.completion_tokens_max},
      {"response_length/clip_ratio", statistics_.truncated_fraction},
      {"actor/entropy", report.entropy},
      {"actor/loss", report.loss},
      {"actor/ppo_kl", report.ppo_kl},
      {"actor/pg_clipfrac", report.pg_clipfrac},
      {"actor/ratio_max", report.ratio_max},
      {"actor/grad_norm", report.grad_norm},
      {"actor/lr", report.lr},
      {"timing_s/update_actor", report.seconds_update},
      {"timing_s/update_weights", report.seconds_publish},
      {"timing_s/wait_payload", report.seconds_wait_payload},
      {"timing_s/step", seconds(now - statistics_.step_sent)},
      {"perf/throughput", job.tokens_trained_per_s},
      {"tandem/staleness/p50", staleness.quantile(0.5)},
      {"tandem/staleness/p99", staleness.quantile(0.99)},
      {"tandem/staleness/max", staleness.max()},
      {"tandem/ledger/issued", counters.issued},
      {"tandem/ledger/trained", counters.trained},
      {"tandem/ledger/discarded", counters.discarded_total()},
      {"tandem/ledger/live", counters.live},
      {"tandem/queue_depth", job.queue_depth},
      {"tandem/oldest_sample_age_steps", figures.oldest_sample_age_steps},
      {"tandem/wall_seconds", work(now).wall_seconds},
      {"tandem/trainer_idle_fraction", job.trainer_idle_fraction},
      {"tandem/rollout_idle_fraction", figures.rollout_idle_fraction},
      {"tandem/tokens_generated_per_s", job.tokens_generated_per_s},
      {"tandem/groups_zero_variance", report.groups_zero_variance},
      {"tandem/steps_skipped", report.steps_skipped},
      {"tandem/logprob_diff/max_at_staleness_0", report.logprob_diff_max_at_staleness_0},
      {"tandem/logprob_diff/mean", report.logprob_diff_mean}};
  for (const auto& [key, figure] :
       {std::pair("actor/kl_loss", report.kl_loss),
        std::pair("actor/pg_clipfrac_lower", report.pg_clipfrac_lower),
        std::pair("actor/reward_kl_penalty", report.reward_kl_penalty),
        std::pair("rollout_corr/rollout_is_mean", report.rollout_is_mean),
        std::pair("rollout_corr/rollout_is_eff_sample_size", report.rollout_is_eff_sample_size)})
    if (figure) line[key] = *figure;
  if (statistics_.trained.tokens > 0)
    line["tandem/tokens_generated_per_trained"] =
        static_cast<double>(statistics_.work.tokens_generated) /
        static_cast<double>(statistics_.trained.tokens);
  if (job.eval) add_metrics(line, *job.eval);
  effects_.push_back(WriteMetrics{dump_json(line)});
}

void ExchangeCore::write_samples(const StepCommitted& committed) {
  const Entry& entry = flow_.entries.at(training_.batch.front());
  WriteStepSamples samples{.step = committed.step,
                           .payload = entry.header->payload,
                           .rewards = entry.rewards,
                           .advantages = committed.report.advantages,
                           .finishes = {}};
  // The report has those of the whole batch, and this group is its first.
  samples.advantages.resize(std::min(samples.advantages.size(), entry.rewards.size()));
  for (const TrajectoryHeader& trajectory : entry.header->trajectories)
    samples.finishes.push_back(trajectory.finish);
  effects_.push_back(std::move(samples));
}

// A group that is discarded because the reward failed.
void ExchangeCore::write_failure_sample(const Entry& entry, std::size_t trajectory,
                                        const ScoreFailed& failure) {
  effects_.push_back(
      WriteFailureSample{.step = flow_.ledger.next_commit(),
                         .payload = entry.header->payload,
                         .trajectory = trajectory,
                         .prompt = config_.train[config_.prompt_at(entry.position)].prompt,
                         .reason = failure.reason});
}

std::string ExchangeCore::result_json(Time now, JobOutcome outcome) const {
  const auto counters = flow_.ledger.counters();
  nlohmann::json discarded = nlohmann::json::object();
  for (std::size_t i = 0; i < scheduler::kDiscardReasons; ++i)
    if (counters.discarded[i] > 0)
      discarded[scheduler::name(static_cast<scheduler::DiscardReason>(i))] = counters.discarded[i];
  nlohmann::json evaluation;
  if (!config_.validation.empty()) evaluation = result_of_evaluations(statistics_);
  const TrainedTotals& trained = statistics_.trained;
  const WorkTotals total = work(now);
  const double published = static_cast<double>(std::max<std::uint64_t>(total.publish_count, 1));
  const nlohmann::json result{
      {"state", name(outcome)},
      {"steps", flow_.ledger.next_commit().value},
      {"policy_version", flow_.ledger.next_commit().value},
      {"reward_mean", statistics_.reward_mean_of_step},
      {"eval", evaluation},
      {"staleness",
       {{"bound", config_.budget.max_staleness},
        {"max", trained.staleness.max()},
        {"mean", trained.staleness.mean()}}},
      {"ledger",
       {{"issued", counters.issued},
        {"trained", counters.trained},
        {"discarded", discarded},
        {"live", counters.live},
        {"retrained", counters.retrained}}},
      {"tokens", {{"generated", total.tokens_generated}, {"trained", trained.tokens}}},
      {"logprob_diff",
       {{"max_at_staleness_0", trained.logprob_diff_max_at_staleness_0},
        {"tokens_at_staleness_0", trained.tokens_at_staleness_0}}},
      {"weight_publish",
       {{"count", total.publish_count},
        {"bytes_mean", static_cast<double>(total.publish_bytes) / published},
        {"seconds_p50", statistics_.publish_seconds_p50()}}},
      {"trainer_idle_fraction", status(now).trainer_idle_fraction},
      {"rollout_idle_fraction", rollout_idle_fraction(now)},
      {"wall_seconds", total.wall_seconds},
      {"steps_skipped", trained.steps_skipped},
      {"weights_sha256", statistics_.weights_sha256}};
  return dump_json(result, 2);
}

}  // namespace tandem::actors
