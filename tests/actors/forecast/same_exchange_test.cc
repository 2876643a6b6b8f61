// `tandem simulate` and a running job are the same exchange: a job of a whole simulated cluster,
// with its real controller, exchange and role actors, takes as long as the forecast of it says.
//
// Tests actors/forecast/forecast.h.
#include <gtest/gtest.h>

#include "actors/forecast/forecast.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::forecast {
namespace {

using namespace std::chrono_literals;
using controller::SimulatedJob;

const bool kMute = (log::mute(), true);

// Steps long enough that the network's delays do not count.
struct Schedule {
  std::int64_t max_staleness = 0;
  bool fixed_lag = false;
  std::int32_t rollouts = 1;
  bool partial_rollout = true;
};

SimulatedJob job_of(const Schedule& schedule) {
  const auto [max_staleness, fixed_lag, rollouts, partial_rollout] = schedule;
  SimulatedJob job = controller::plain_job(7);
  job.exchange.budget = {.max_staleness = max_staleness,
                         .lookahead = scheduler::default_lookahead(max_staleness),
                         .groups_per_step = 48,
                         .steps_total = 40};
  job.exchange.fixed_lag = fixed_lag;
  // Groups of one: the engine of the simulated cluster keeps a group's places until its last
  // completion ends, which a forecast's, and a real one, does not.
  job.exchange.n = 1;
  job.exchange.save.steps = 0;
  job.replicas = {{messages::Role::kRollout, rollouts}, {messages::Role::kReward, 1}};
  job.engine.engine.args.max_num_seqs = 16;
  job.engine.engine.max_response_length = 120;
  job.engine.engine.partial_rollout = partial_rollout;
  job.engine.step_time = 20ms;
  job.engine.sequence_time = 2ms;
  job.engine.install_time = 100ms;
  job.engine.tokens_min = 20;
  job.engine.tokens_max = 120;
  job.engine.long_every = 0;
  job.trainer.train_time = 5s;
  job.trainer.ids_count = !fixed_lag;
  job.scorer = {.score_max = 0ms, .values = 1000, .capacity = 1000};
  job.load_max = job.payload_max = 0ms;
  return job;
}

ForecastConfig forecast_of(const SimulatedJob& job) {
  ForecastConfig config{.exchange = job.exchange,
                        .rollouts = {},
                        .rollout = {},
                        .learner = {.step_s = 5},
                        .reward = {},
                        .failures = {},
                        .lengths = *Lengths::parse("uniform(20,120)")};
  config.rollouts.assign(static_cast<std::size_t>(job.replicas.at(messages::Role::kRollout)),
                         {.step_s = 0.02, .sequence_s = 0.002, .install_s = 0.1});
  config.rollout.capacity = 24;  // the actor's default for 16 sequences
  config.rollout.max_num_seqs = 16;
  config.rollout.response_most = 120;
  config.rollout.partial_rollout = job.engine.engine.partial_rollout;
  return config;
}

class SameExchange : public testing::TestWithParam<Schedule> {};

TEST_P(SameExchange, AForecastTakesAsLongAsTheJob) {
  const std::int64_t max_staleness = GetParam().max_staleness;
  const SimulatedJob job = job_of(GetParam());
  controller::ClusterConditions conditions;
  conditions.network.delay_max = 200us;
  conditions.check_every = 5000;
  auto cluster = controller::cluster_of(1, conditions);
  const std::string id = controller::run_job(*cluster, job);
  const auto run = cluster->run_of(id);
  const nlohmann::json real = parse_json(run->record.result_json.value_or(""));
  ASSERT_EQ(real.value("state", ""), "Succeeded");
  std::vector<double> commits;  // when each step was committed
  for (const auto& entry : run->record.entries)
    if (std::holds_alternative<exchange::StepTrained>(entry.event))
      commits.push_back(static_cast<double>(entry.time_ms) / 1000);
  ASSERT_EQ(commits.size(), 40u);

  const auto predicted = forecast(forecast_of(job));
  ASSERT_TRUE(predicted) << predicted.error().message;
  ASSERT_EQ(predicted->steps.size(), 40u);
  const double real_s = commits.back() - commits.front();
  const double predicted_s = predicted->steps.back().at_s - predicted->steps.front().at_s;
  EXPECT_NEAR(predicted_s, real_s, 0.03 * real_s);
  EXPECT_NEAR(predicted->trainer_idle_fraction, real["trainer_idle_fraction"].get<double>(), 0.03);
  EXPECT_NEAR(predicted->staleness_mean, real["staleness"]["mean"].get<double>(),
              0.05 * static_cast<double>(max_staleness) + 0.02);
  EXPECT_EQ(predicted->staleness.back().first, real["staleness"]["max"].get<std::int64_t>());
  EXPECT_EQ(predicted->groups_trained, real["ledger"]["trained"].get<std::int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Schedules, SameExchange,
                         testing::Values(Schedule{0, false, 2}, Schedule{1, false, 1},
                                         Schedule{1, false, 3}, Schedule{2, false, 2},
                                         Schedule{4, false, 2}, Schedule{1, true, 2},
                                         Schedule{3, true, 1}, Schedule{2, false, 2, false}));

}  // namespace
}  // namespace tandem::forecast
