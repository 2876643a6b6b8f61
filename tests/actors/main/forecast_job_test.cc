// Tests actors/main/forecast_job.h.
#include "actors/main/forecast_job.h"

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

// The time of a score that a run has measured holds its waits for cores: it has none to wait for
// again.
TEST(ForecastJob, AScoreThatARunHasMeasuredSharesNoCores) {
  job::JobSpec job;
  job.pools.reward.cpus_per_actor = 0.5;
  const auto lengths = *forecast::Lengths::parse("constant(100)");
  ForecastPlan plan{
      .rollouts = {{.step_s = 0.01}}, .reward = {.score_s = 0.2}, .host_cores = 2, .steps = {}};
  EXPECT_EQ(forecast_config(job, plan, lengths, 1).reward.threads, 0.5) << "a stated time";
  plan.score_measured = true;
  const forecast::ForecastConfig measured = forecast_config(job, plan, lengths, 1);
  EXPECT_EQ(measured.reward.threads, 0);
  EXPECT_EQ(measured.reward.score_s, 0.2);
}

}  // namespace
}  // namespace tandem::app
