// Names of figures are those of the field where it has one (verl's), and tandem/… otherwise;
// docs/metrics.md lists all of them, and a test compares it with what is written here.
#include "actors/exchange/step_figures.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/fleet_json.h"
#include "actors/exchange/fleet_view.h"
#include "actors/exchange/journal_rows.h"
#include "actors/exchange/run_report.h"
#include "actors/exchange/work_totals.h"
#include "runtime/base/json.h"

namespace tandem::exchange {

using scheduler::GroupState;

namespace {

// How far the oldest sample that waits for training is behind the newest commit, in policy
// versions. Only groups that wait count: `entries` also has those trained since the last
// checkpoint.
std::int64_t oldest_sample_age(const GroupFlow& flow) {
  const std::int64_t next = flow.ledger.next_commit().value;
  std::int64_t age = 0;
  for (const auto state : {GroupState::kGenerated, GroupState::kScoring, GroupState::kScored}) {
    for (const auto& [due, group] : flow.ledger.queue(state)) {
      const auto entry = flow.entries.find(group);
      if (entry == flow.entries.end() || !entry->second.header) continue;
      for (const messages::TrajectoryHeader& trajectory : entry->second.header->trajectories)
        age = std::max(age, next - static_cast<std::int64_t>(trajectory.oldest.value));
    }
  }
  return age;
}

// The means of the numbers that the reward has sent beside its scores.
void add_extras(Turn& turn, const std::vector<GroupId>& batch, nlohmann::json& line) {
  std::vector<std::string_view> extras;
  for (const GroupId group : batch)
    if (const auto notes = turn.seen.notes.find(group); notes != turn.seen.notes.end())
      extras.insert(extras.end(), notes->second.extras.begin(), notes->second.extras.end());
  for (const auto& [key, mean] : turn.seen.extra_keys.means(extras))
    line["critic/rewards/extra/" + key + "/mean"] = mean;
  tell_of_extras(turn);
}

// The figures of the step, beside those that its line in metrics.jsonl has.
messages::StepFigures figures_of_step(const RunView& view, const messages::StepReport& report) {
  messages::StepFigures figures{.reward_mean = view.seen.statistics.batch.rewards.mean,
                                .loss = report.loss,
                                .grad_norm = report.grad_norm,
                                .lr = report.lr,
                                .ppo_kl = report.ppo_kl,
                                .entropy = report.entropy,
                                .logprob_diff_mean = report.logprob_diff_mean,
                                .rollout_idle_fraction = rollout_idle_fraction(view),
                                .oldest_sample_age_steps = oldest_sample_age(view.facts.flow),
                                .skipped_in_row = report.skipped_in_row};
  if (report.tokens_at_staleness_0 > 0)
    figures.logprob_diff_max_at_staleness_0 = report.logprob_diff_max_at_staleness_0;
  return figures;
}

// The figures that the learner reports of a step.
nlohmann::json learner_line(const messages::StepReport& report) {
  const Spread advantages = spread_of(report.advantages);
  return {{"critic/advantages/mean", advantages.mean},
          {"critic/advantages/min", advantages.min},
          {"critic/advantages/max", advantages.max},
          {"critic/advantages/std", advantages.std},
          {"actor/loss", report.loss},
          {"actor/grad_norm", report.grad_norm},
          {"actor/lr", report.lr},
          {"timing_s/update_actor", report.seconds_update},
          {"timing_s/update_weights", report.seconds_publish},
          {"timing_s/wait_payload", report.seconds_wait_payload},
          {"tandem/groups_zero_variance", report.groups_zero_variance},
          {"tandem/observed_fraction", report.observed_fraction},
          {"tandem/steps_skipped", report.steps_skipped},
          {"tandem/logprob_diff/max_at_staleness_0", report.logprob_diff_max_at_staleness_0},
          {"tandem/logprob_diff/mean", report.logprob_diff_mean}};
}

// Figures that only some algorithms have, or only batches of which a token counts in the loss.
void add_optional_figures(const messages::StepReport& report, nlohmann::json& line) {
  for (const auto& [key, figure] :
       {std::pair("actor/entropy", report.entropy), std::pair("actor/ppo_kl", report.ppo_kl),
        std::pair("actor/pg_clipfrac", report.pg_clipfrac),
        std::pair("clip_ratio/low_mean", report.pg_clipfrac_low),
        std::pair("clip_ratio/high_mean", report.pg_clipfrac_high),
        std::pair("actor/ratio_max", report.ratio_max),
        std::pair("rollout_corr/rollout_rs_masked_fraction", report.rollout_rs_masked_fraction),
        std::pair("rollout_corr/rollout_rs_seq_masked_fraction",
                  report.rollout_rs_seq_masked_fraction),
        std::pair("rollout_corr/rollout_is_veto_fraction", report.rollout_is_veto_fraction),
        std::pair("rollout_corr/rollout_is_catastrophic_token_fraction",
                  report.rollout_is_catastrophic_token_fraction),
        std::pair("rollout_corr/rollout_is_batch_norm_factor", report.rollout_is_batch_norm_factor),
        std::pair("actor/kl_loss", report.kl_loss),
        std::pair("actor/pg_clipfrac_lower", report.pg_clipfrac_lower),
        std::pair("actor/reward_kl_penalty", report.reward_kl_penalty),
        std::pair("rollout_corr/rollout_is_mean", report.rollout_is_mean),
        std::pair("rollout_corr/rollout_is_eff_sample_size", report.rollout_is_eff_sample_size)})
    if (figure) line[key] = *figure;
}

}  // namespace

namespace {

void say_reached(Turn& turn, const auto& event) {
  turn.record(event);
  turn.say(text_of(event), messages::EventLevel::kWarning);
  turn.wake();
}

}  // namespace

void take(Turn& turn, const SamplesAtLimit&) {
  if (turn.seen.history.limits_reached().samples) return;
  say_reached(turn, SamplesFull{static_cast<std::int64_t>(turn.config.file_limits.samples_bytes)});
}

void take(Turn& turn, const MetricsAtLimit&) {
  if (turn.seen.history.limits_reached().metrics) return;
  say_reached(turn,
              MetricsThinned{static_cast<std::int64_t>(turn.config.file_limits.metrics_bytes)});
}

void take(Turn& turn, const RecordWarned& warned) {
  turn.say(warned.text, messages::EventLevel::kWarning);
  turn.wake();
}

void tell_of_extras(Turn& turn) {
  if (const auto left_out = turn.seen.extra_keys.left_out())
    turn.say("the reward's `extra` has more than " + std::to_string(kExtraKeysMax) +
                 " numbers: metrics have so many of them, and for example `" + *left_out +
                 "` is not among them",
             messages::EventLevel::kWarning);
}

void write_metrics(Turn& turn, const messages::StepCommitted& committed,
                   const std::vector<GroupId>& batch) {
  const messages::StepReport& report = committed.report;
  RunStatistics& statistics = turn.seen.statistics;
  const BatchFigures& shown = statistics.batch;
  const StalenessCount& staleness = shown.staleness;
  const auto counters = turn.facts.flow.ledger.counters();
  const messages::JobStatus job = status_of(turn.view());
  const messages::StepFigures& figures =
      statistics.last_step.emplace(figures_of_step(turn.view(), report));
  nlohmann::json line{{"step", committed.step.value + 1},
                      {"critic/rewards/mean", shown.rewards.mean},
                      {"critic/rewards/min", shown.rewards.min},
                      {"critic/rewards/max", shown.rewards.max},
                      {"critic/rewards/std", shown.rewards.std},
                      {"tandem/solve_all", shown.solved_all},
                      {"tandem/solve_none", shown.solved_none},
                      {"response_length/mean", shown.completion_tokens_mean},
                      {"response_length/max", shown.completion_tokens_max},
                      {"response_length/clip_ratio", shown.truncated_fraction},
                      {"timing_s/step", seconds(turn.now - statistics.step_sent)},
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
                      {"tandem/wall_seconds", work_of(turn.view()).wall_seconds},
                      {"tandem/trainer_idle_fraction", job.trainer_idle_fraction},
                      {"tandem/rollout_idle_fraction", figures.rollout_idle_fraction},
                      {"tandem/rollouts", rollouts_at_work(turn.view())},
                      {"tandem/tokens_generated_per_s", job.tokens_generated_per_s},
                      {"tandem/goodput", job.cost.goodput},
                      {"tandem/rewards_failed", shown.rewards_failed},
                      {"tandem/groups_kept_by_filter", shown.kept},
                      {"tandem/steps_without_gradient", statistics.trained.steps_without_gradient}};
  line.update(learner_line(report));
  add_optional_figures(report, line);
  if (report.recorded_bytes) line["tandem/recorded_bytes"] = *report.recorded_bytes;
  if (job.rates) add_metrics(line, *job.rates);
  if (job.cost.per_step) line["tandem/cost/step"] = *job.cost.per_step;
  if (job.cost.total) line["tandem/cost/total"] = *job.cost.total;
  if (job.gap) {
    line["tandem/predicted/trainer_idle_fraction"] = job.gap->trainer_idle_fraction;
    line["tandem/predicted/rollouts"] = job.gap->rollouts_matched;
  }
  add_extras(turn, batch, line);
  if (statistics.trained.tokens > 0)
    line["tandem/tokens_generated_per_trained"] =
        static_cast<double>(statistics.work.tokens_generated) /
        static_cast<double>(statistics.trained.tokens);
  turn.send(WriteMetrics{dump_json(line)});
}

void write_samples(Turn& turn, const messages::StepCommitted& committed,
                   const std::vector<GroupId>& batch) {
  const auto n = static_cast<std::size_t>(turn.config.n);
  std::size_t rows = n;
  if (const auto& limit = turn.config.samples.per_step) rows = static_cast<std::size_t>(*limit);
  const std::vector<float>& advantages = committed.report.advantages;
  for (std::size_t i = 0; i < batch.size() && rows > 0; ++i) {
    const GroupFacts& facts = turn.facts.flow.entries.at(batch[i]);
    WriteStepSamples samples{.step = StepId{committed.step.value + 1},
                             .record = turn.config.train[turn.config.prompt_at(facts.position)],
                             .keys = turn.config.record_keys,
                             .payload = facts.header->payload,
                             .rewards = facts.rewards,
                             .advantages = {},
                             .finishes = {},
                             .notes = {},
                             .rows_max = rows};
    for (std::size_t at = i * n; at < std::min((i + 1) * n, advantages.size()); ++at)
      samples.advantages.push_back(advantages[at]);
    for (const messages::TrajectoryHeader& trajectory : facts.header->trajectories)
      samples.finishes.push_back(trajectory.finish);
    if (const auto notes = turn.seen.notes.find(batch[i]); notes != turn.seen.notes.end())
      samples.notes = notes->second;
    rows -= std::min(rows, facts.rewards.size());
    turn.send(std::move(samples));
  }
}

}  // namespace tandem::exchange
