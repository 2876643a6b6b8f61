// An exchange that goes on from the journal of one that has died, and peers that come back to it.
#include "actors/exchange/follow.h"

#include <algorithm>
#include <utility>

#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;
using messages::Evaluate;
using messages::LearnerBack;
using messages::RolloutBack;
using messages::SaveCheckpoint;

class Following : public testing::Test {
 protected:
  static controller::SimulatedJob saving_job() {
    controller::SimulatedJob job = controller::plain_job(1);
    job.exchange.save.steps = 2;
    return job;
  }
  static controller::SimulatedJob evaluated_job() {
    controller::SimulatedJob job = controller::plain_job(1);
    job.validation_prompts = 6;
    return job;
  }
  static void forget_messages(Stage& stage) {
    stage.to_rollout.clear();
    stage.to_reward.clear();
    stage.to_learner.clear();
  }
  static std::int64_t rows(const Stage& stage, const std::string& kind) {
    return std::ranges::count(stage.record.events, kind, &controller::JournalledRow::kind);
  }
  static std::size_t steps(const Stage& stage) {
    return Stage::only<TrainStep>(stage.to_learner).size();
  }
  static RolloutBack back(const ActorId& rollout, std::optional<PolicyVersion> installed) {
    return {.from = rollout,
            .capacity = kCapacity,
            .installed = installed,
            .checksum = installed ? Stage::checksum_of(*installed) : 0,
            .held = {}};
  }
  // The rollout has stored all that it was assigned, of which the exchange has not heard.
  static std::pair<RolloutBack, std::vector<messages::GroupHeader>> stored_untold(Stage& stage) {
    stage.begin();
    std::pair<RolloutBack, std::vector<messages::GroupHeader>> stored{
        back(kRollout, PolicyVersion{0}), {}};
    for (const GroupWork& work : stage.assigned()) {
      stored.first.held.push_back({work.group, work.attempt});
      stored.second.push_back(stage.stored(work, PolicyVersion{0}));
    }
    return stored;
  }
  // The rollout is the last one.
  static void come_back(Stage& stage, const RolloutBack& rollout) {
    stage.tell(LearnerBack{.from = kLearner, .step = StepId{0}, .training = {}, .source = {}});
    stage.tell(messages::RewardBack{.from = kReward, .capacity = 100, .held = {}});
    stage.tell(rollout);
  }
  static std::size_t prompts(const Stage& stage) {
    std::size_t sum = 0;
    for (const Evaluate& work : Stage::only<Evaluate>(stage.to_rollout)) sum += work.prompts.size();
    return sum;
  }
};

// A controller that died in between had asked the learner as well.
TEST_F(Following, ALearnerThatSaysTwiceThatItIsBackGetsOneStep) {
  Stage stage;
  stage.begin();
  for (const GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.score_everything();
  ASSERT_EQ(steps(stage), 1u);
  stage.follow();
  forget_messages(stage);
  const LearnerBack here{.from = kLearner, .step = StepId{0}, .training = {}, .source = {}};
  stage.tell(here);
  ASSERT_EQ(steps(stage), 1u) << "the command was lost with the exchange";
  EXPECT_EQ(stage.step_sent()->step, StepId{0});
  stage.tell(here);
  EXPECT_EQ(steps(stage), 1u) << "EX-8";
  EXPECT_TRUE(stage.refused.empty());
  EXPECT_EQ(rows(stage, "retrained"), 0);
}

// It publishes its first weights while its controller dies: that is heard before it has said that
// it is back, and it publishes them once more.
TEST_F(Following, ALearnerThatPublishesAsItComesBackIsAskedForOneWarmStart_EX8) {
  Stage stage;
  stage.tell(stage.learner_up(kLearner, {}));
  const messages::Published published{kLearner,
                                      stage.publication(kInitialWeights, kInitialWeights)};
  stage.follow();
  forget_messages(stage);
  stage.tell(published);
  EXPECT_TRUE(stage.to_learner.empty()) << "it is away";
  stage.tell(LearnerBack{.from = kLearner, .step = StepId{0}, .training = {}, .source = {}});
  ASSERT_EQ(Stage::only<messages::PublishInitial>(stage.to_learner).size(), 1u);
  stage.tell(published);
  EXPECT_EQ(Stage::only<messages::WarmStart>(stage.to_learner).size(), 1u);
  EXPECT_TRUE(stage.refused.empty());
}

// A step is not asked for before the warm start has ended, and its end may be told twice.
TEST_F(Following, AWarmStartGoesOn_EX8) {
  controller::SimulatedJob job = evaluated_job();
  job.exchange.warm_start = true;
  Stage stage(job);
  const auto warm_starts = [&] {
    return Stage::only<messages::WarmStart>(stage.to_learner).size();
  };
  stage.tell(stage.learner_up(kLearner, {}));
  stage.tell(messages::Published{kLearner, stage.publication(kInitialWeights, kInitialWeights)});
  stage.tell(messages::RolloutUp{kRollout, kCapacity});
  stage.tell(messages::RewardUp{kReward, 100});
  stage.install(kRollout, kInitialWeights);
  ASSERT_EQ(warm_starts(), 1u);
  LearnerBack here{.from = kLearner, .step = StepId{0}, .training = {}, .source = {}};
  const messages::WarmStarted ended{.from = kLearner,
                                    .publication = stage.publication({0}, kInitialWeights)};

  stage.follow();
  forget_messages(stage);
  stage.tell(back(kRollout, kInitialWeights));
  EXPECT_GT(prompts(stage), 0u) << "the evaluation before begins anew";
  stage.tell(here);
  EXPECT_EQ(warm_starts(), 1u) << "the command was lost with the exchange";
  here.warm_started = true;

  stage.follow();
  forget_messages(stage);
  stage.tell(back(kRollout, kInitialWeights));
  stage.tell(here);
  EXPECT_EQ(warm_starts(), 0u) << "it is under way";
  stage.tell(ended);
  stage.install(kRollout, PolicyVersion{0});
  EXPECT_FALSE(stage.assigned().empty()) << "training begins";

  stage.follow();  // the exchange died before it could send a step
  stage.tell(ended);
  stage.tell(here);
  EXPECT_EQ(warm_starts(), 0u);
  EXPECT_EQ(rows(stage, "published"), 1);
  EXPECT_TRUE(stage.refused.empty()) << stage.refused.front();
}

// It had stored payloads of which the exchange before never heard. It is the last one to come back,
// and what it tells then comes a moment later.
TEST_F(Following, AnAnswerOfTheTimeBeforeIsTakenAlsoFromTheLastOneToComeBack_EX8) {
  Stage stage;
  auto [here, headers] = stored_untold(stage);
  stage.follow();
  come_back(stage, here);
  stage.tell(messages::Generated{kRollout, {headers[0]}});
  stage.run(7min);  // longer than an actor that is away is waited for
  stage.tell(messages::Generated{kRollout, {headers.begin() + 1, headers.end()}});
  EXPECT_TRUE(stage.refused.empty()) << stage.refused.front();
  EXPECT_EQ(rows(stage, "generated"), std::ssize(headers));
  EXPECT_EQ(rows(stage, "released"), 0);
}

// What nobody tells of takes no room for ever.
TEST_F(Following, WhatWasStoredForNobodyGoesOnceAllHaveAnswered) {
  Stage stage;
  auto [here, headers] = stored_untold(stage);
  stage.payload_store.put("of a rollout that died");
  stage.follow();
  come_back(stage, here);
  EXPECT_EQ(stage.payload_store.size(), headers.size() + 1);
  stage.tell(messages::Generated{kRollout, headers});
  EXPECT_EQ(stage.payload_store.size(), headers.size());
}

// It may live, amid a very long step: the job would wait for ever for what it says, which counts no
// more.
TEST_F(Following, ALearnerThatIsGivenUpIsRefusedAndTheNextOneGoesOn) {
  Stage stage;
  stage.begin();
  stage.train(1);
  stage.follow();
  stage.tell(back(kRollout, PolicyVersion{1}));
  stage.run(7min);
  ASSERT_EQ(stage.refused.size(), 2u) << "the reward actor is away as well";
  EXPECT_TRUE(std::ranges::any_of(stage.refused, [](const std::string& refused) {
    return refused.starts_with(kLearner.name + ": it has not come back");
  }));
  const ActorId next{kLearner.name, Incarnation{14}};
  stage.tell(stage.learner_up(next, StepId{0}));
  ASSERT_NE(stage.step_sent(), nullptr);
  stage.commit(next);
  EXPECT_EQ(rows(stage, "retrained"), 1);
  EXPECT_FALSE(stage.ended());
}

TEST_F(Following, ALearnerAtWorkIsLeftAtIt) {
  Stage stage;
  stage.begin();
  for (const GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.score_everything();
  stage.follow();
  forget_messages(stage);
  stage.tell(LearnerBack{.from = kLearner, .step = StepId{0}, .training = StepId{0}, .source = {}});
  EXPECT_EQ(steps(stage), 0u) << "EX-8";
}

// Its first word may have been said to the exchange before and, unheard, to this one.
TEST_F(Following, ALearnerThatIsUpAndSaysSoAgainHasNotDied) {
  Stage stage(saving_job());
  stage.begin();
  stage.train(1);
  stage.tell(stage.learner_up(kLearner, StepId{0}));
  EXPECT_EQ(rows(stage, "learner_restarted"), 0);
  stage.follow();
  stage.tell(LearnerBack{.from = kLearner, .step = StepId{1}, .training = {}, .source = {}});
  const std::size_t sent = steps(stage);
  stage.tell(stage.learner_up(kLearner, StepId{0}));
  EXPECT_EQ(rows(stage, "learner_restarted"), 0);
  EXPECT_EQ(steps(stage), sent);
  EXPECT_EQ(stage.exchange->core().ledger().counters().retrained, 0);
}

TEST_F(Following, ALearnerOfAnotherStepIsRefused) {
  Stage stage;
  stage.begin();
  stage.train(1);
  stage.follow();
  stage.tell(LearnerBack{.from = kLearner, .step = StepId{4}, .training = {}, .source = {}});
  ASSERT_EQ(stage.refused.size(), 1u);
  EXPECT_NE(stage.refused[0].find("at step 4, not at 1"), std::string::npos) << stage.refused[0];
}

TEST_F(Following, ACheckpointThatWasAskedForInVainIsAskedForOnceMore) {
  for (const bool owes_step : {false, true}) {
    controller::SimulatedJob job = saving_job();
    // Without lookahead the groups of a step are begun after the step before.
    if (!owes_step) job.exchange.budget.max_staleness = job.exchange.budget.lookahead = 0;
    Stage stage(job);
    stage.begin();
    stage.train(2);
    ASSERT_EQ(Stage::only<SaveCheckpoint>(stage.to_learner).size(), 1u);
    ASSERT_EQ(stage.step_sent()->step, StepId{owes_step ? 2 : 1});
    stage.follow();
    forget_messages(stage);
    stage.tell(LearnerBack{.from = kLearner, .step = StepId{2}, .training = {}, .source = {}});
    const auto saves = Stage::only<SaveCheckpoint>(stage.to_learner);
    ASSERT_EQ(saves.size(), 1u) << "EX-2";
    EXPECT_EQ(saves[0].step, StepId{2});
    ASSERT_EQ(steps(stage), owes_step ? 1u : 0u);
    if (!owes_step) continue;
    const auto first = std::ranges::find_if(stage.to_learner, [](const auto& message) {
      return std::holds_alternative<SaveCheckpoint>(message) ||
             std::holds_alternative<TrainStep>(message);
    });
    EXPECT_TRUE(std::holds_alternative<SaveCheckpoint>(*first))
        << "the weights of step 2 are saved before they are trained on";
  }
}

TEST_F(Following, AWorkerThatDoesNotComeBackIsGivenUp) {
  Stage stage;
  stage.begin();
  const std::size_t held = stage.assigned().size();
  ASSERT_GT(held, 0u);
  stage.follow();
  stage.tell(LearnerBack{.from = kLearner, .step = StepId{0}, .training = {}, .source = {}});
  stage.tell(messages::RewardBack{.from = kReward, .capacity = 100, .held = {}});
  forget_messages(stage);
  const ActorId other{"job-1/rollout/1", Incarnation{9}};
  stage.tell(messages::RolloutUp{other, kCapacity});
  stage.install(other, PolicyVersion{0});
  stage.run(5min);
  EXPECT_TRUE(stage.assigned().empty()) << "EX-8: it may still hold them";
  stage.run(2min);
  EXPECT_EQ(stage.assigned().size(), held);
  EXPECT_EQ(rows(stage, "released"), static_cast<std::int64_t>(held));
}

// A rollout that came up between two controllers is met as one that lives: it was given prompts
// when it said that it is up, and has dropped them since.
TEST_F(Following, PromptsOfAnEvaluationThatAWorkerHasDroppedAreGivenAgain) {
  Stage stage(evaluated_job());
  stage.begin();
  stage.follow();
  stage.tell(LearnerBack{.from = kLearner, .step = StepId{0}, .training = {}, .source = {}});
  forget_messages(stage);
  const ActorId other{"job-1/rollout/1", Incarnation{9}};
  stage.tell(messages::RolloutUp{other, kCapacity});
  EXPECT_EQ(prompts(stage), 6u);
  stage.tell(back(other, {}));
  EXPECT_EQ(prompts(stage), 12u) << "each of them once more";
}

// The journal keeps no answers of evaluations: this one begins anew, after the publisher has given
// its version up.
TEST_F(Following, AnEvaluationWaitsForTheRolloutsThatMayStillUseItsVersion) {
  Stage stage(evaluated_job());
  stage.begin();
  const auto works = Stage::only<Evaluate>(stage.to_rollout);
  for (const Evaluate& work : works) {
    messages::Evaluated answer{.from = kRollout, .evaluation = work.evaluation};
    for (const messages::EvaluationPrompt& prompt : work.prompts)
      answer.completions.push_back({.index = prompt.index, .sample = 0, .text = "x"});
    stage.tell(answer);
  }
  for (const GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  for (const messages::RewardInbox& message : std::exchange(stage.to_reward, {}))
    if (const auto* groups = std::get_if<messages::ScoreGroups>(&message))
      for (const messages::GroupToScore& group : groups->groups)
        stage.tell(messages::GroupsScored{
            kReward, {{group.group, group.attempt, {messages::Scored{1}, messages::Scored{0}}}}});
  ASSERT_NE(stage.step_sent(), nullptr);
  const PolicyVersion next{1};
  stage.tell(messages::StepCommitted{.from = kLearner,
                                     .step = StepId{0},
                                     .checksum = Stage::checksum_of(next),
                                     .publication = stage.publication(next, next),
                                     .report = {}});
  stage.follow();
  stage.tell(LearnerBack{.from = kLearner, .step = StepId{1}, .training = {}, .source = {}});
  EXPECT_EQ(rows(stage, "evaluation_incomplete"), 0) << "its rollout is away";
  forget_messages(stage);
  stage.tell(back(kRollout, PolicyVersion{0}));
  EXPECT_EQ(prompts(stage), 6u) << "it has not gone on to version 1";
  EXPECT_EQ(rows(stage, "evaluation_incomplete"), 0);
}

// The controller dies between the run's journal and its own: nobody has heard how the run ended.
TEST_F(Following, ARunThatHasEndedIsFollowedToItsResult) {
  for (const bool fails : {false, true}) {
    Stage stage;
    stage.begin();
    if (fails)
      stage.tell(messages::EndJob{messages::JobOutcome::kFailed, "its learner died too often"});
    else
      stage.train(stage.job.exchange.budget.steps_total);
    if (!fails) {
      const StepId last{stage.job.exchange.budget.steps_total};
      stage.tell(messages::CheckpointSaved{kLearner, last, "step-last", "sha"});
    }
    const auto ended = stage.ended();
    ASSERT_TRUE(ended.has_value());
    const auto result = parse_json(std::exchange(stage.record.result_json, {}).value());
    const std::size_t events = stage.record.events.size();
    stage.to_controller.clear();
    forget_messages(stage);
    stage.follow();
    ASSERT_TRUE(stage.ended().has_value());
    EXPECT_EQ(stage.ended()->outcome, ended->outcome);
    EXPECT_EQ(stage.ended()->reason, ended->reason);
    EXPECT_TRUE(stage.ended()->has_result);
    const auto again = parse_json(stage.record.result_json.value());
    for (const char* same : {"state", "message", "steps", "ledger", "staleness", "weights_sha256"})
      EXPECT_EQ(again[same], result[same]) << same;
    EXPECT_EQ(stage.record.events.size(), events) << "nothing is left to decide";
    stage.record.result_json = "{}";
    stage.follow();
    EXPECT_EQ(stage.record.result_json, "{}") << "one that was written stays";
    stage.tell(LearnerBack{.from = kLearner, .step = StepId{0}, .training = {}, .source = {}});
    stage.tell(back(kRollout, PolicyVersion{0}));
    EXPECT_TRUE(stage.refused.empty());
    EXPECT_TRUE(stage.to_learner.empty());
  }
}

}  // namespace
}  // namespace tandem::exchange
