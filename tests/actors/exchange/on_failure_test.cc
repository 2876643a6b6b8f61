// Tests what becomes of completions that the reward could not score, and of the texts that it sent
// beside scores.
//
// Tests actors/exchange/reward_troubles.h, actors/exchange/scoring.h.
#include <gtest/gtest.h>

#include "actors/exchange/reward_troubles.h"
#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

const messages::ScoreFailed kLate{"the program hung for 10 s"};

controller::SimulatedJob failing_job(std::optional<double> on_failure) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.on_failure = on_failure;
  return job;
}

// Generates what is assigned, with payloads that can be read, and gives each group these scores.
void score_all(Stage& stage, const std::vector<messages::TrajectoryScore>& scores) {
  const auto works = stage.assigned();
  for (; stage.works_done < works.size(); ++stage.works_done) {
    const messages::GroupWork& work = works[stage.works_done];
    messages::GroupPayload payload{
        .group = work.group, .attempt = work.attempt, .prompt = work.prompt};
    payload.trajectories.assign(static_cast<std::size_t>(work.n), {.text = "said"});
    messages::GroupHeader header{.group = work.group,
                                 .attempt = work.attempt,
                                 .payload = stage.payload_store.put(wire::encode(payload))};
    const PolicyVersion version{stage.exchange->core().ledger().next_commit().value};
    header.trajectories.assign(static_cast<std::size_t>(work.n),
                               {.oldest = version, .newest = version, .completion_tokens = 3});
    stage.tell(messages::Generated{kRollout, {header}});
  }
  for (const messages::RewardInbox& message : std::exchange(stage.to_reward, {}))
    if (const auto* work = std::get_if<messages::ScoreGroups>(&message))
      for (const messages::GroupToScore& group : work->groups)
        if (!stage.ended())
          stage.tell(messages::GroupsScored{kReward, {{group.group, group.attempt, scores}}});
}

nlohmann::json line_of_step(const Stage& stage, std::int64_t step) {
  for (const std::string& text : stage.record.metrics_lines)
    if (nlohmann::json line = parse_json(text); line["step"] == step) return line;
  return {};
}

std::int64_t discarded(const Stage& stage) {
  return stage.exchange->core().ledger().counters().discarded_total();
}

TEST(OnFailure, AFailureIsDiscardedUnlessTheJobGivesItAReward) {
  Stage discards(failing_job({}));
  discards.begin();
  score_all(discards, {messages::Scored{1}, kLate});
  EXPECT_GT(discarded(discards), 0);

  Stage stage(failing_job(-1.0));
  stage.begin();
  score_all(stage, {messages::Scored{1}, kLate});
  EXPECT_EQ(discarded(stage), 0);
  ASSERT_NE(stage.step_sent(), nullptr);
  EXPECT_EQ(stage.step_sent()->groups.front().rewards, (std::vector<float>{1, -1}));
  stage.commit();
  EXPECT_EQ(line_of_step(stage, 1)["tandem/rewards_failed"], 4) << "one of each of four groups";
  EXPECT_EQ(stage.newest_totals().trained.rewards_failed, 4);
  std::size_t named = 0;
  for (const std::string& text : stage.record.sample_lines) {
    const nlohmann::json line = parse_json(text);
    if (!line.contains("error")) continue;
    EXPECT_EQ(line["error"], kLate.reason);
    EXPECT_EQ(line["reward"], -1);
    ++named;
  }
  EXPECT_GT(named, 4u) << "each failure, and the row of the step";
}

TEST(OnFailure, ARewardThatHasNeverWorkedEndsTheJobAllTheSame) {
  controller::SimulatedJob job = failing_job(0.0);
  job.exchange.budget.groups_per_step = 16;
  Stage stage(job);
  stage.begin();
  for (int round = 0; round < 100 && !stage.ended(); ++round) score_all(stage, {kLate, kLate});
  ASSERT_TRUE(stage.ended());
  EXPECT_TRUE(stage.ended()->reason.starts_with("the reward has never worked"))
      << stage.ended()->reason;
}

TEST(OnFailure, GroupsOfNothingButFailuresEndTheJobAfterEightBatches) {
  for (const bool filters : {false, true}) {
    controller::SimulatedJob job = failing_job(0.0);
    job.exchange.filter_groups.enable = filters;
    job.exchange.budget.steps_total = 100;
    Stage stage(job);
    stage.begin();
    score_all(stage, {messages::Scored{1}, messages::Scored{0}});
    for (int round = 0; round < 300 && !stage.ended(); ++round) {
      if (stage.exchange->core().report(stage.executor.now()).status.step < 99 &&
          stage.step_sent() != nullptr &&
          stage.step_sent()->step == stage.exchange->core().ledger().next_commit())
        stage.commit();
      score_all(stage, {kLate, kLate});
    }
    ASSERT_TRUE(stage.ended()) << filters;
    EXPECT_NE(stage.ended()->reason.find("groups failed in a row"), std::string::npos)
        << stage.ended()->reason;
  }
}

TEST(RewardExtra, IsInTheRowsOfItsStepAndItsNumbersAreMetrics) {
  controller::SimulatedJob job = failing_job({});
  job.exchange.samples.per_step = 3;
  Stage stage(job);
  stage.begin();
  score_all(stage, {messages::Scored{1, {}, R"({"format": 1, "why": "good"})"},
                    messages::Scored{0, {}, R"({"format": 0})"}});
  stage.commit();
  EXPECT_EQ(line_of_step(stage, 1)["critic/rewards/extra/format/mean"], 0.5);
  ASSERT_EQ(stage.record.sample_lines.size(), 3u) << "samples.per_step, of two groups";
  EXPECT_EQ(parse_json(stage.record.sample_lines[0])["extra"]["why"], "good");
  EXPECT_EQ(parse_json(stage.record.sample_lines[1])["extra"]["format"], 0);
}

TEST(Samples, OfAnEvaluationAreAsManyAsTheJobKeeps) {
  const auto kept = [](std::optional<std::int64_t> limit) {
    controller::SimulatedJob job = controller::plain_job(1);
    job.validation_prompts = 20;
    job.exchange.evaluation.sampling = {.n = 4, .temperature = 1};
    job.exchange.budget.steps_total = 2;
    job.exchange.samples = {.per_step = 0, .evaluation = limit};
    const auto cluster = controller::cluster_of(1);
    const auto run = cluster->run_of(controller::run_job(*cluster, job));
    std::map<std::string, std::int64_t> of_kind;
    for (const std::string& text : run->record.sample_lines)
      ++of_kind[parse_json(text).value("eval", "training")];
    return of_kind;
  };
  EXPECT_EQ(kept(std::nullopt),
            (std::map<std::string, std::int64_t>{{"before", 80}, {"final", 80}}));
  EXPECT_EQ(kept(6), (std::map<std::string, std::int64_t>{{"before", 6}, {"final", 6}}));
}

}  // namespace
}  // namespace tandem::exchange
