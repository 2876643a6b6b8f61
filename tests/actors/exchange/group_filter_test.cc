// Which groups are filtered, that those which are kept all the same are told where people look, and
// when checkpoints and evaluations are due.
//
// Tests actors/exchange/group_filter.h, actors/exchange/checkpoints.h.
#include "actors/exchange/group_filter.h"

#include <gtest/gtest.h>

#include "actors/exchange/checkpoints.h"
#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using scheduler::DiscardReason;

TEST(GroupFilter, LooksAtRewardsOrAtSuccessAndAtTheMeansBounds) {
  const std::vector<float> equal{0.2f, 0.2f}, wrong{0.2f, 0.4f}, half{0, 1}, most{1, 1, 1, 0};
  const auto reason = [](const GroupFilter& filter, const std::vector<float>& rewards) {
    return reason_to_filter(filter, rewards);
  };
  EXPECT_EQ(reason({}, equal), std::nullopt);
  const GroupFilter score{.enable = true};
  EXPECT_EQ(reason(score, equal), DiscardReason::kZeroVariance);
  for (const auto* rewards : {&wrong, &half, &most})
    EXPECT_EQ(reason(score, *rewards), std::nullopt);
  const GroupFilter acc{.enable = true, .by_accuracy = true};
  EXPECT_EQ(reason(acc, wrong), DiscardReason::kZeroVariance) << "none succeeds";
  EXPECT_EQ(reason(acc, half), std::nullopt);
  const GroupFilter bounds{.enable = true, .by_accuracy = true, .lower = 0.5, .upper = 0.75};
  EXPECT_EQ(reason(bounds, half), DiscardReason::kOutsideBounds) << "bounds are excluded";
  EXPECT_EQ(reason(bounds, most), DiscardReason::kOutsideBounds);
  EXPECT_EQ(reason(bounds, {1, 1, 0}), std::nullopt);
  EXPECT_EQ(reason({.enable = true, .lower = 0.25}, wrong), std::nullopt) << "its mean is 0.3";
  EXPECT_EQ(reason({.enable = true, .lower = 0.35}, wrong), DiscardReason::kOutsideBounds);
}

controller::SimulatedJob filtering() {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.filter_groups.enable = true;
  job.exchange.gen_batches_max = 2;
  return job;
}

messages::JobStatus status_of(Stage& stage) {
  return stage.exchange->core().report(stage.executor.now()).status;
}

bool waits_for_filter(const messages::JobStatus& status) {
  return std::ranges::any_of(status.waits, [](const messages::Wait& wait) {
    return wait.waits_for.find("algorithm.filter_groups") != std::string::npos;
  });
}

// Generates and scores all that is assigned, until a step can be committed.
void commit_next(Stage& stage, float first_reward) {
  const auto next = stage.exchange->core().ledger().next_commit();
  for (int round = 0; round < 100; ++round) {
    const auto works = stage.assigned();
    for (; stage.works_done < works.size(); ++stage.works_done)
      stage.generate(works[stage.works_done], PolicyVersion{next.value});
    stage.score_everything(first_reward);
    if (stage.step_sent() && stage.step_sent()->step == next) return stage.commit();
  }
  FAIL() << "no batch was formed";
}

TEST(GroupFilter, GroupsThatAreKeptAreToldInGetWhyEventsAndMetrics) {
  Stage stage(filtering());
  stage.begin();
  commit_next(stage, 1);
  EXPECT_FALSE(status_of(stage).filter_keeps);
  EXPECT_EQ(parse_json(stage.record.metrics_lines.back())["tandem/groups_kept_by_filter"], 0);
  const auto warnings = [&] {
    std::size_t count = 0;
    for (const auto& event : Stage::only<messages::ExchangeEvent>(stage.to_controller))
      count += event.message.find("max_num_gen_batches, 2, was reached") != std::string::npos &&
               event.level == messages::EventLevel::kWarning;
    return count;
  };
  EXPECT_EQ(warnings(), 0u);
  for (int step = 0; step < 3; ++step) commit_next(stage, 0);  // all rewards are 0
  ASSERT_TRUE(status_of(stage).filter_keeps);
  EXPECT_TRUE(waits_for_filter(status_of(stage)));
  EXPECT_GT(parse_json(stage.record.metrics_lines.back())["tandem/groups_kept_by_filter"], 0);
  EXPECT_EQ(warnings(), 1u) << "once, while it lasts";
  for (int step = 0; step < 4; ++step) commit_next(stage, 1);
  EXPECT_FALSE(status_of(stage).filter_keeps);
  EXPECT_FALSE(waits_for_filter(status_of(stage)));
  // The result has all of them, and what was warned of.
  std::int64_t kept = 0;
  for (const std::string& line : stage.record.metrics_lines)
    kept += parse_json(line).value("tandem/groups_kept_by_filter", 0);
  stage.tell(messages::EndJob{messages::JobOutcome::kFailed, "enough"});
  ASSERT_TRUE(stage.record.result_json);
  const nlohmann::json result = parse_json(*stage.record.result_json);
  EXPECT_EQ(result["groups_kept_by_filter"], kept);
  ASSERT_FALSE(result["warnings"].empty());
  EXPECT_NE(result["warnings"][0].get<std::string>().find("max_num_gen_batches, 2, was reached"),
            std::string::npos);
}

TEST(GroupFilter, AGroupOutsideTheBoundsIsDiscardedByThatName) {
  controller::SimulatedJob job = filtering();
  job.exchange.filter_groups.upper = 0.5;
  Stage stage(job);
  stage.begin();
  for (const GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.score_everything(2);  // rewards 2 and 0
  const auto discarded = stage.exchange->core().report(stage.executor.now()).ledger.discarded;
  ASSERT_EQ(discarded.size(), 1u);
  EXPECT_EQ(discarded[0].first, "outside_bounds");
}

std::vector<std::int64_t> saved_steps(const controller::SimulatedJob& job, std::int64_t steps,
                                      Duration each = {}) {
  Stage stage(job);
  stage.begin();
  std::vector<std::int64_t> saved;
  for (std::int64_t step = 1; step <= steps; ++step) {
    stage.run(each);
    stage.train(step);
    const auto saves = Stage::only<messages::SaveCheckpoint>(stage.to_learner);
    if (saves.empty() || (!saved.empty() && saves.back().step.value == saved.back())) continue;
    saved.push_back(saves.back().step.value);
    stage.tell(messages::CheckpointSaved{kLearner, saves.back().step, "step", "sha"});
  }
  return saved;
}

TEST(SaveSchedule, CountsStepsEpochsAndTime) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.budget.steps_total = 100;
  job.exchange.save = {.steps = 5};
  EXPECT_EQ(saved_steps(job, 12), (std::vector<std::int64_t>{5, 10}));
  // Each step takes ten seconds and more.
  job.exchange.save = {.time = std::chrono::seconds(25)};
  EXPECT_EQ(saved_steps(job, 10, std::chrono::seconds(10)), (std::vector<std::int64_t>{3, 6, 9}));
  job.exchange.save = {};
  EXPECT_EQ(saved_steps(job, 10), std::vector<std::int64_t>{});
  job.exchange.save = {.epochs = 1};
  const std::int64_t groups = job.exchange.budget.groups_per_step;
  const auto prompts =
      static_cast<std::int64_t>(controller::exchange_config(job, "job-1", false).train.size());
  std::vector<std::int64_t> wanted;
  for (std::int64_t step = 1; step <= 30; ++step)
    if (step * groups / prompts > (step - 1) * groups / prompts) wanted.push_back(step);
  ASSERT_FALSE(wanted.empty()) << prompts << " prompts, " << groups << " a step";
  EXPECT_EQ(saved_steps(job, 30), wanted);
}

TEST(SaveSchedule, NoEvaluationComesBeforeTrainingWhereTheJobSaysSo) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 1;
  job.exchange.test_freq = 2;
  for (const bool before : {true, false}) {
    job.exchange.val_before_train = before;
    Stage stage(job);
    stage.begin();
    EXPECT_EQ(Stage::only<messages::Evaluate>(stage.to_rollout).empty(), !before);
    stage.train(2);
    EXPECT_FALSE(Stage::only<messages::Evaluate>(stage.to_rollout).empty());
  }
}

}  // namespace
}  // namespace tandem::exchange
