// The best checkpoint by a key of the evaluations: saved, kept from pruning, named, and known to a
// run that is resumed.
//
// Tests actors/exchange/exchange.h.
#include <gtest/gtest.h>

#include <map>

#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

constexpr const char* kKey = "val/reward/mean";

controller::SimulatedJob job_of(std::uint64_t seed) {
  controller::SimulatedJob job = controller::plain_job(seed);
  job.validation_prompts = 8;
  job.exchange.save.steps = 6;
  job.exchange.test_freq = 4;
  job.exchange.best.key = kKey;
  return job;
}

// Answers the evaluations that wait: each version earns its value.
void answer_evaluations(Stage& stage, const std::map<std::int64_t, double>& values) {
  std::map<messages::EvaluationId, double> earned;
  for (const messages::RolloutInbox& message : std::vector(stage.to_rollout))
    if (const auto* work = std::get_if<messages::Evaluate>(&message)) {
      earned[work->evaluation] = values.at(work->version.value);
      stage.tell(messages::Evaluated{
          .from = kRollout, .evaluation = work->evaluation, .completions = {{.index = 0}}});
    }
  for (const messages::RewardInbox& message : std::vector(stage.to_reward))
    if (const auto* work = std::get_if<messages::ScoreTexts>(&message))
      stage.tell(messages::TextsScored{
          kReward, work->evaluation, {{0, 0, messages::Scored{earned.at(work->evaluation)}}}});
}

TEST(KeepBest, TheVersionWithTheGreatestValueIsSavedKeptAndNamed) {
  controller::SimulatedJob job = job_of(1);
  job.validation_prompts = 1;
  job.exchange.test_freq = 1;
  job.exchange.save.steps = 0;
  job.exchange.budget.steps_total = 4;
  const std::map<std::int64_t, double> values{{0, 0.1}, {1, 0.7}, {2, 0.3}, {3, 0.7}, {4, 0.2}};
  Stage stage(job);
  stage.begin();
  answer_evaluations(stage, values);
  EXPECT_EQ(stage.record.best, std::vector{StepId{0}}) << "that of the warm start";
  std::vector<std::vector<StepId>> kept;
  for (std::int64_t step = 1; step <= 4; ++step) {
    stage.train(step);
    const auto saves = Stage::only<messages::SaveCheckpoint>(stage.to_learner);
    ASSERT_EQ(saves.size(), static_cast<std::size_t>(step)) << "each evaluated step is saved";
    kept.push_back(saves.back().keep);
    stage.tell(messages::CheckpointSaved{kLearner, saves.back().step, "step", "sha"});
    answer_evaluations(stage, values);
  }
  using Steps = std::vector<StepId>;
  const StepId s0{0}, s1{1}, s2{2}, s3{3}, s4{4};
  EXPECT_EQ(kept, (std::vector<Steps>{{s0, s1}, {s1, s2}, {s1, s3}, {s1, s4}}))
      << "the best one, and the one that is evaluated";
  EXPECT_EQ(stage.record.best, (Steps{s0, s1})) << "of equals the earliest";
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(
      parse_json(*stage.record.result_json)["best_checkpoint"],
      (nlohmann::json{{"step", 1}, {"key", kKey}, {"value", 0.7}, {"path", "checkpoints/step-1"}}));
}

TEST(KeepBest, WithoutAKeyNothingIsKeptOrNamed) {
  controller::SimulatedJob job = job_of(1);
  job.exchange.best.key.clear();
  const auto cluster = controller::cluster_of(1);
  const auto run = cluster->run_of(controller::run_job(*cluster, job));
  EXPECT_FALSE(run->checkpoints->checkpoints.contains(StepId{4})) << "only save_freq counts";
  EXPECT_TRUE(run->checkpoints->kept.empty());
  EXPECT_TRUE(run->record.best.empty());
  EXPECT_TRUE(parse_json(*run->record.result_json)["best_checkpoint"].is_null());
}

TEST(KeepBest, AKeyThatAnEvaluationLacksIsAnEvent) {
  controller::SimulatedJob job = job_of(1);
  job.exchange.best.key = "val/gsm8k/reward/mean";
  const auto cluster = controller::cluster_of(1);
  const auto run = cluster->run_of(controller::run_job(*cluster, job));
  EXPECT_TRUE(run->record.best.empty());
  const nlohmann::json result = parse_json(*run->record.result_json);
  const std::string said =
      "evaluation before has no `val/gsm8k/reward/mean`, by which "
      "learner.keep_best looks for the best checkpoint: without it none is the "
      "best (it has `val/reward/mean`)";
  EXPECT_EQ(result["warnings"], nlohmann::json({said})) << "once, of all evaluations";
}

TEST(KeepBest, TheLeastValueIsTheBestWhereTheJobSaysSo) {
  RunStatistics statistics;
  const auto add = [&](std::int64_t version, double value) {
    messages::EvaluationFigures figures;
    figures.all.mean = value;
    return statistics.add_evaluation({EvaluationKind::kPeriodic, {version}, figures},
                                     {.key = kKey, .least = true});
  };
  EXPECT_TRUE(add(1, 0.5));
  EXPECT_FALSE(add(2, 0.7));
  EXPECT_FALSE(add(3, 0.5)) << "of equals the earliest";
  EXPECT_TRUE(add(4, 0.2));
  EXPECT_EQ(statistics.best->version, PolicyVersion{4});
}

}  // namespace
}  // namespace tandem::exchange
