#include "actors/main/forecast_job.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "actors/main/roles/role_config.h"
#include "actors/rollout/rollout_actor.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/rng.h"

namespace tandem::app {

forecast::ForecastConfig forecast_config(const job::JobSpec& job, const ForecastPlan& plan,
                                         const forecast::Lengths& lengths, std::uint64_t seed) {
  const auto n = static_cast<std::int32_t>(job.rollout.n);
  const auto seqs = static_cast<std::int32_t>(job.rollout.args.max_num_seqs);
  forecast::RolloutModelConfig rollout{
      .self = {},
      .costs = {},
      .capacity = job.async.max_concurrent_rollouts
                      ? static_cast<std::int32_t>(*job.async.max_concurrent_rollouts)
                      : rollout::capacity_default(seqs, n),
      .max_num_seqs = seqs,
      .prompt_tokens = plan.prompt_tokens,
      .response_most = static_cast<std::int32_t>(job.data.max_response_length),
      .partial_rollout = job.async.partial_rollout,
      .recompute_kv = job.async.kv_on_update == rollout::KvOnUpdate::kRecompute,
      .prefix_caching = job.rollout.args.enable_prefix_caching,
      .threads = static_cast<double>(job.pools.rollout.threads_per_actor)};
  // The exchange has prompts of its own in a forecast: none of the job's files are read.
  JobPrompts none{.training = {.records = {}, .order = job::PromptOrder(0, false, 1)},
                  .validation = {}};
  auto exchange = exchange_config(job, {"forecast", ""}, false, std::move(none));
  exchange.seed = derive_seed(seed, "forecast");
  if (plan.steps) exchange.budget.steps_total = *plan.steps;
  forecast::RewardCosts reward = plan.reward;
  reward.threads = plan.score_measured ? 0 : job.pools.reward.cpus_per_actor;
  return {.exchange = std::move(exchange),
          .rollouts = plan.rollouts,
          .rollout = rollout,
          .learner = plan.learner,
          .learner_threads =
              static_cast<double>(job.pools.learner.threads_per_actor * job.learner.ranks),
          .reward = reward,
          .failures = plan.failures,
          .host_cores = plan.host_cores,
          .lengths = lengths,
          .seed = seed};
}

forecast::EngineCosts engine_costs(const scheduler::FleetRates& rates) {
  forecast::EngineCosts costs{.name = {},
                              .step_s = rates.engine.step_s,
                              .sequence_s = rates.engine.sequence_s,
                              .prompt_token_s = rates.engine.prompt_token_s,
                              .install_s = rates.install_seconds,
                              .fetch_s = rates.fetch_seconds};
  if (costs.step_s + costs.sequence_s > 0) return costs;
  double sum = 0;
  for (const scheduler::RolloutRate& rollout : rates.rollouts) sum += rollout.tokens_per_s;
  costs.sequence_s = static_cast<double>(rates.rollouts.size()) / sum;
  return costs;
}

Result<forecast::Lengths> recorded_lengths(const std::filesystem::path& run_dir) {
  auto journal = runs::RunJournal::open_to_read(run_dir.string());
  if (!journal) return journal.error();
  std::deque<std::vector<std::int32_t>> groups;
  const auto read = journal->read([&](const exchange::JournalEntry& entry) {
    const auto* generated = std::get_if<exchange::GroupGenerated>(&entry.event);
    if (!generated || generated->header.trajectories.empty()) return;
    std::vector<std::int32_t>& group = groups.emplace_back();
    for (const messages::TrajectoryHeader& trajectory : generated->header.trajectories)
      group.push_back(std::max(1, trajectory.completion_tokens));
    if (groups.size() > kRecordedGroupsMost) groups.pop_front();
  });
  if (!read) return read.error();
  if (groups.empty())
    return Error{ErrorCode::kInvalid, "the run has generated no group yet", run_dir.string(),
                 "`--lengths lognormal(MEAN,SIGMA,MOST)` states a distribution"};
  return forecast::Lengths::recorded({groups.begin(), groups.end()});
}

}  // namespace tandem::app
