// What a run has cost, of both pools and over all incarnations.
//
// Tests actors/exchange/run_cost.h, actors/exchange/cost_json.h.
#include "actors/exchange/run_cost.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "actors/exchange/cost_json.h"
#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;

// A rollout on half a GPU, whose device costs 1 a second, and two ranks of the learner at 2 each.
controller::SimulatedJob priced_job() {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.devices = {.per_rollout = 0.5, .learner = 2};
  job.exchange.pricing = scheduler::Pricing{.rollout = 3600, .learner = 7200, .currency = "EUR"};
  return job;
}

messages::CostStatus cost_now(const Stage& stage) {
  return stage.exchange->core().report(stage.executor.now()).status.cost;
}

// The rollout is up for so long, and reports.
void work(Stage& stage, Duration time) {
  stage.run(time);
  stage.tell(messages::RolloutStats{.from = kRollout});
}

constexpr double kNear = 0.2;  // messages take some virtual time

TEST(RunCost, IsThatOfBothPoolsAndOfTheNewestSteps) {
  Stage stage(priced_job());
  stage.begin();
  work(stage, 10s);
  const messages::CostStatus before = cost_now(stage);
  EXPECT_NEAR(before.rollout_device_seconds, 5, kNear);
  EXPECT_NEAR(before.learner_device_seconds, 20, kNear);
  EXPECT_NEAR(before.total.value_or(0), 5 * 1 + 20 * 2, kNear);
  EXPECT_FALSE(before.per_step) << "no step is committed";
  EXPECT_EQ(before.currency, "EUR");
  EXPECT_EQ(before.goodput, 0);
  const StepReport report{.tokens_trained = 500};
  stage.train(1, report);
  EXPECT_NEAR(cost_now(stage).per_step.value_or(0), 45, kNear) << "all until it was committed";
  EXPECT_NEAR(cost_now(stage).goodput, 500 / 25.0, kNear);
  work(stage, 4s);
  EXPECT_NEAR(cost_now(stage).per_step.value_or(0), 45, kNear) << "of steps that are committed";
  stage.train(2, report);
  EXPECT_NEAR(cost_now(stage).per_step.value_or(0), 2 * 1 + 8 * 2, kNear);
  EXPECT_NEAR(cost_now(stage).total.value_or(0), 45 + 18, kNear);
  EXPECT_NEAR(cost_now(stage).goodput, 1000 / 35.0, kNear);
  const nlohmann::json line = parse_json(stage.record.metrics_lines.back());
  EXPECT_NEAR(line.at("tandem/cost/step").get<double>(), 18, kNear);
  EXPECT_NEAR(line.at("tandem/cost/total").get<double>(), 63, kNear);
  EXPECT_NEAR(line.at("tandem/goodput").get<double>(), 1000 / 35.0, kNear);
}

TEST(RunCost, WithoutPricesIsAbsentAndGoodputIsThere) {  // GP-1
  controller::SimulatedJob job = priced_job();
  job.exchange.pricing.reset();
  Stage stage(job);
  stage.begin();
  work(stage, 10s);
  stage.train(1, {.tokens_trained = 500});
  const messages::CostStatus cost = cost_now(stage);
  EXPECT_FALSE(cost.per_step || cost.total);
  EXPECT_NEAR(cost.goodput, 20, kNear);
  const nlohmann::json shown = cost_json(cost);
  EXPECT_FALSE(shown.contains("total") || shown.contains("per_step") || shown.contains("currency"));
  EXPECT_NEAR(shown["device_seconds"]["learner"].get<double>(), 20, kNear);
  const nlohmann::json line = parse_json(stage.record.metrics_lines.back());
  EXPECT_FALSE(line.contains("tandem/cost/step") || line.contains("tandem/cost/total"));
  EXPECT_NEAR(line.at("tandem/goodput").get<double>(), 20, kNear);
}

// What is free is told as free, and not as unknown.
TEST(RunCost, APriceOfNothingCostsNothing) {
  controller::SimulatedJob job = priced_job();
  job.exchange.pricing = scheduler::Pricing{};
  Stage stage(job);
  stage.begin();
  work(stage, 1s);
  stage.train(1);
  EXPECT_EQ(cost_json(cost_now(stage))["total"], 0);
  EXPECT_EQ(cost_json(cost_now(stage))["per_step"], 0);
}

TEST(RunCost, OfARolloutThatIsGoneStays) {
  Stage stage(priced_job());
  stage.begin();
  work(stage, 10s);
  stage.tell(messages::ActorDown{kRollout});
  stage.run(5s);
  const messages::CostStatus cost = cost_now(stage);
  EXPECT_NEAR(cost.rollout_device_seconds, 5, kNear) << "it costs nothing any more";
  EXPECT_NEAR(cost.learner_device_seconds, 30, kNear);
}

TEST(RunCost, GoesOnUnderTheNextController) {
  Stage stage(priced_job());
  stage.begin();
  work(stage, 10s);
  stage.train(1, {.tokens_trained = 500});
  const messages::CostStatus before = cost_now(stage);
  stage.follow();
  const messages::CostStatus after = cost_now(stage);
  EXPECT_NEAR(after.total.value_or(0), before.total.value_or(-1), kNear);
  EXPECT_NEAR(after.per_step.value_or(0), before.per_step.value_or(-1), kNear)
      << "the mean of all steps, as no commit was seen";
  EXPECT_NEAR(after.goodput, before.goodput, kNear);
}

}  // namespace
}  // namespace tandem::exchange
