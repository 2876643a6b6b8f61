// Messages that a peer may not send to an exchange: the message is dropped, the peer is named once,
// and the groups of others stay as they were. On an exchange that believes its peers each of these
// frees what is another's, or ends the process.
//
// Tests actors/exchange/exchange.h.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

const ActorId kOther{"job-1/rollout/1", Incarnation{7}};

messages::GroupHeader header_of(Stage& stage, const messages::GroupWork& work) {
  messages::GroupHeader header{
      .group = work.group, .attempt = work.attempt, .payload = stage.payload_store.put("x")};
  header.trajectories.assign(static_cast<std::size_t>(work.n), {.completion_tokens = 3});
  return header;
}

struct Attacked : Stage {
  Attacked() {
    begin();
    tell(messages::RolloutUp{kOther, 1});  // no room for a group
    install(kOther, PolicyVersion{0});
    works = assigned();
  }
  std::int64_t generated() const {
    return exchange->core().ledger().count(scheduler::GroupState::kGenerated) +
           exchange->core().ledger().count(scheduler::GroupState::kScoring);
  }
  std::vector<messages::GroupWork> works;
};

TEST(ExchangeChecks, PayloadsThatNobodyStoredAreRefused) {
  Attacked stage;
  messages::GroupHeader header = header_of(stage, stage.works[0]);
  header.payload.offset = 99;
  stage.tell(messages::Generated{kRollout, {header}});
  EXPECT_EQ(stage.refused,
            std::vector<std::string>{"job-1/rollout/0: Generated: a payload that is not its own"});
  EXPECT_EQ(stage.generated(), 0);
  EXPECT_EQ(stage.payload_store.size(), 1u) << "nothing was freed";
}

// An end may cross an answer, or an answer that is told again.
TEST(ExchangeChecks, WhatOneThatHasEndedTellsAgainIsNoReasonToRefuseIt) {
  Attacked stage;
  const messages::GroupHeader mine = header_of(stage, stage.works[0]);
  stage.tell(messages::Generated{kRollout, {mine}});
  stage.tell(messages::ActorDown{kRollout, "killed"});
  messages::GroupHeader gone = mine;
  gone.payload.offset = 99;
  stage.tell(messages::Generated{kRollout, {mine, gone}});
  EXPECT_EQ(stage.refused, std::vector<std::string>{});
  EXPECT_EQ(stage.payload_store.size(), 1u) << "it is still there";
}

TEST(ExchangeChecks, AnAnswerThatComesAgainWhileTheJournalWaitsIsFreedOnce) {
  Attacked stage;
  const messages::GroupHeader mine = header_of(stage, stage.works[0]);
  stage.tell(messages::ActorDown{kRollout, "killed"});
  stage.record.os_error = ENOSPC;
  stage.record.disk_full = true;
  stage.tell(messages::Generated{kRollout, {mine}});
  stage.tell(messages::Generated{kRollout, {mine}});
  EXPECT_EQ(stage.payload_store.size(), 1u) << "the journal does not have the reason";
  stage.record.disk_full = false;
  stage.run(std::chrono::seconds(2));
  EXPECT_EQ(stage.payload_store.size(), 0u);
}

TEST(ExchangeChecks, PayloadsOfOtherGroupsAreNotFreedByALateAnswer) {
  Attacked stage;
  const messages::GroupHeader mine = header_of(stage, stage.works[0]);
  stage.tell(messages::Generated{kRollout, {mine}});
  messages::GroupHeader late{.group = GroupId{999}, .attempt = 1, .payload = mine.payload};
  late.trajectories.resize(2);
  stage.tell(messages::Generated{kOther, {late}});
  ASSERT_EQ(stage.refused.size(), 1u);
  EXPECT_TRUE(stage.refused[0].starts_with("job-1/rollout/1: Generated: a payload"));
  EXPECT_EQ(stage.payload_store.size(), 1u) << "it is still there";
  stage.tell(messages::Generated{kRollout, {mine}});
  EXPECT_EQ(stage.refused.size(), 2u) << "nor twice by its owner";
  EXPECT_EQ(stage.payload_store.size(), 1u);
}

// Stores a payload for `work` as a rollout does.
wire::PayloadRef stored(Stage& stage, const messages::GroupWork& work) {
  return stage.payload_store.put(wire::encode(
      messages::GroupPayload{.group = work.group, .attempt = work.attempt, .prompt_tokens = {1}}));
}

TEST(ExchangeChecks, TheOtherPayloadsOfARefusedMessageGoWithIt) {
  Attacked stage;
  std::vector<messages::GroupHeader> headers;
  for (std::size_t i = 0; i < 3; ++i) {
    headers.push_back(header_of(stage, stage.works[i]));
    stage.payload_store.release(headers[i].payload);
    headers[i].payload = stored(stage, stage.works[i]);
  }
  headers[1].trajectories.resize(7);
  stage.tell(messages::Generated{kRollout, headers});
  EXPECT_EQ(stage.refused.size(), 1u);
  EXPECT_EQ(stage.generated(), 1);
  EXPECT_TRUE(stage.payload_store.holds(headers[0].payload))
      << "taken before the message was refused";
  EXPECT_EQ(stage.payload_store.size(), 1u);
}

TEST(ExchangeChecks, ARefusedMessageFreesNoPayloadOfAnother) {
  Attacked stage;
  messages::GroupHeader honest = header_of(stage, stage.works[0]);
  stage.payload_store.release(honest.payload);
  honest.payload = stored(stage, stage.works[0]);  // its message is on its way
  messages::GroupHeader forged = honest;
  forged.trajectories.resize(7);
  stage.tell(messages::Generated{kOther, {forged, honest}});
  EXPECT_EQ(stage.refused.size(), 1u);
  EXPECT_TRUE(stage.payload_store.holds(honest.payload));
  stage.tell(messages::Generated{kRollout, {honest}});
  EXPECT_EQ(stage.generated(), 1);
}

TEST(ExchangeChecks, AnotherNumberOfTrajectoriesIsRefused) {
  for (const std::size_t count : {0u, 1u, 3u, 1000u}) {
    Attacked stage;
    messages::GroupHeader header = header_of(stage, stage.works[0]);
    header.trajectories.resize(count);
    stage.tell(messages::Generated{kRollout, {header}});
    EXPECT_EQ(stage.refused.size(), 1u) << count;
    EXPECT_EQ(stage.generated(), 0);
  }
}

TEST(ExchangeChecks, TokensOfVersionsToComeAreRefused) {
  Attacked stage;
  messages::GroupHeader header = header_of(stage, stage.works[0]);
  header.trajectories[1].newest = PolicyVersion{1};
  stage.tell(messages::Generated{kRollout, {header}});
  EXPECT_EQ(stage.refused.size(), 1u);
  stage.tell(messages::Installed{kOther, PolicyVersion{std::int64_t{1} << 39}});
  EXPECT_EQ(stage.refused.size(), 2u);
}

// The pause comes before the install that ends it, and an absurd one is cut to an hour.
TEST(ExchangeChecks, AnInstallsPauseIsJournalledAsTheRolloutMeasuredIt) {
  Stage stage;
  stage.begin();  // with an install without a pause
  for (const double seconds : {0.25, 1e12})
    stage.tell(messages::Installed{.from = kRollout,
                                   .version = PolicyVersion{0},
                                   .seconds = seconds,
                                   .checksum = Stage::checksum_of(PolicyVersion{0})});
  std::vector<std::string> told;
  for (const auto& entry : stage.record.entries) {
    if (const auto* paused = std::get_if<InstallPaused>(&entry.event))
      told.push_back("paused " + std::to_string(paused->seconds));
    if (std::holds_alternative<VersionInstalled>(entry.event)) told.push_back("installed");
  }
  EXPECT_EQ(told, (std::vector<std::string>{"installed", "paused 0.250000", "installed",
                                            "paused 3600.000000", "installed"}));
}

TEST(ExchangeChecks, ARolloutThatInstalledOtherWeightsEndsAndNoTokenOfItIsTaken) {  // EX-7
  Attacked stage;
  stage.tell(messages::Installed{.from = kRollout, .version = PolicyVersion{0}, .checksum = 77});
  const std::string why =
      "Installed: job-1/rollout/0 installed version 0 with checksum 77, and it was published with "
      "checksum 100";
  EXPECT_EQ(stage.refused, std::vector<std::string>{"job-1/rollout/0: " + why});
  const auto events = Stage::only<messages::ExchangeEvent>(stage.to_controller);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].subject, kRollout.name);
  EXPECT_EQ(events[0].message, why);
  stage.tell(
      messages::Generated{kRollout, {header_of(stage, stage.works[0])}});  // it was on its way
  EXPECT_EQ(stage.generated(), 0);
  EXPECT_EQ(stage.payload_store.size(), 0u) << "released";
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kRolling), 0);
  const std::size_t assigned = stage.assigned().size();
  stage.tell(messages::RolloutUp{{kRollout.name, Incarnation{9}}, kCapacity});
  stage.install({kRollout.name, Incarnation{9}}, PolicyVersion{0});
  EXPECT_EQ(stage.assigned().size(), assigned + 12) << "its next incarnation has all of them";
}

TEST(ExchangeChecks, LeasesOfOthersAreNotAnswered) {
  Attacked stage;
  ASSERT_EQ(Stage::only<messages::Assign>(stage.to_rollout).size(), 1u) << "all are kRollout's";
  stage.tell(messages::Generated{kOther, {header_of(stage, stage.works[0])}});
  stage.tell(messages::Unservable{kOther, stage.works[1].group, stage.works[1].attempt});
  EXPECT_EQ(stage.refused.size(), 2u);
  EXPECT_EQ(stage.exchange->core().ledger().counters().discarded_total(), 0);
  stage.generate(stage.works[2], PolicyVersion{0});
  const auto scoring = Stage::only<messages::ScoreGroups>(stage.to_reward);
  ASSERT_EQ(scoring.size(), 1u);
  const messages::GroupToScore& group = scoring[0].groups[0];
  stage.tell(messages::Unservable{kOther, group.group, group.attempt});
  EXPECT_EQ(stage.refused.size(), 3u) << "of a reward";
  const ActorId reward{"job-1/reward/1", Incarnation{8}};
  stage.tell(messages::RewardUp{reward, 100});
  stage.tell(messages::GroupsScored{
      reward, {{group.group, group.attempt, {messages::Scored{1}, messages::Scored{0}}}}});
  EXPECT_EQ(stage.refused.size(), 4u);
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kScored), 0);
}

TEST(ExchangeChecks, NobodyComesUpTwice) {
  Attacked stage;
  stage.tell(messages::RolloutUp{kRollout, 1000});
  stage.tell(messages::RewardUp{kReward, 1000});
  EXPECT_EQ(stage.refused.size(), 2u);
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kRolling), 12);
}

TEST(ExchangeChecks, ALearnerReportsWhatItWasAsked) {
  const messages::Publication ahead{PolicyVersion{5}, kInitialWeights};
  const std::vector<Exchange::Inbox> wrong = {
      messages::Published{kLearner, ahead},
      messages::Published{kLearner, {PolicyVersion{0}, kInitialWeights}},
      messages::WarmStarted{.from = kLearner, .publication = {PolicyVersion{0}, kInitialWeights}},
      messages::StepCommitted{.from = kLearner, .step = StepId{0}},
      messages::StepCommitted{.from = kLearner, .step = StepId{3}, .publication = ahead},
      messages::CheckpointSaved{kLearner, StepId{7}, "step-7", ""}};
  for (const Exchange::Inbox& message : wrong) {
    Attacked stage;
    stage.tell(message);
    EXPECT_EQ(stage.refused.size(), 1u) << "message " << message.index();
    EXPECT_FALSE(stage.ended());
    stage.train(2);
    EXPECT_EQ(stage.exchange->core().ledger().next_commit(), StepId{2}) << "and all goes on";
  }
}

TEST(ExchangeChecks, ACommittedStepPublishesItsOwnVersion) {
  Attacked stage;
  for (const messages::GroupWork& work : stage.works) stage.generate(work, PolicyVersion{0});
  stage.score_everything();
  ASSERT_NE(stage.step_sent(), nullptr);
  messages::StepCommitted committed{.from = kLearner, .step = StepId{0}};
  committed.publication = messages::Publication{PolicyVersion{9}, kInitialWeights};
  stage.tell(committed);
  EXPECT_EQ(stage.refused.size(), 1u);
  stage.commit();
  EXPECT_EQ(stage.exchange->core().ledger().next_commit(), StepId{1});
}

// A payload of more trajectories than its header says: the samples read one reward of each.
TEST(ExchangeChecks, APayloadsOwnCountIsNotBelieved) {
  Attacked stage;
  messages::GroupPayload payload{
      .group = stage.works[0].group, .prompt = "p", .prompt_tokens = {1}};
  payload.trajectories.resize(500, {.tokens = {1}, .logprobs = {-1}, .text = "t"});
  for (const messages::GroupWork& work : stage.works) {
    messages::GroupHeader header = header_of(stage, work);
    header.payload = stage.payload_store.put(wire::encode(payload));
    stage.tell(messages::Generated{kRollout, {header}});
  }
  stage.score_everything();
  stage.commit();
  EXPECT_TRUE(stage.record.sample_lines.empty());
  EXPECT_EQ(stage.exchange->core().ledger().next_commit(), StepId{1});
}

TEST(ExchangeOutgoing, LongListsGoInSeveralMessages) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 40;
  Stage stage(job);
  stage.link.bytes_max = 250;
  stage.begin();
  const auto works = stage.assigned();
  EXPECT_EQ(works.size(), 12u);
  EXPECT_GT(Stage::only<messages::Assign>(stage.to_rollout).size(), 1u);
  const auto evaluations = Stage::only<messages::Evaluate>(stage.to_rollout);
  EXPECT_GT(evaluations.size(), 1u);
  std::int32_t index = 0;
  for (const messages::Evaluate& part : evaluations) {
    messages::Evaluated done{.from = kRollout, .evaluation = part.evaluation};
    for (const messages::EvaluationPrompt& prompt : part.prompts) {
      EXPECT_EQ(prompt.index, index++) << "in their order";
      done.completions.push_back({prompt.index, 0, std::string(60, 't'), false});
    }
    stage.tell(done);
  }
  EXPECT_EQ(index, 40);
  std::size_t texts = 0;
  const auto scoring = Stage::only<messages::ScoreTexts>(stage.to_reward);
  for (const messages::ScoreTexts& part : scoring) texts += part.texts.size();
  EXPECT_EQ(texts, 40u);
  EXPECT_GT(scoring.size(), evaluations.size());
  for (const messages::GroupWork& work : works) stage.generate(work, PolicyVersion{0});
  stage.link.bytes_max = 80;
  stage.score_everything();
  const auto steps = Stage::only<messages::TrainStep>(stage.to_learner);
  ASSERT_GT(steps.size(), 1u);
  for (const messages::TrainStep& part : steps) EXPECT_EQ(part.more, &part != &steps.back());
  stage.commit();
  EXPECT_EQ(stage.exchange->core().ledger().next_commit(), StepId{1});
}

// A split step trains on the same trajectories, in the same order, as a whole one.
TEST(ExchangeOutgoing, ASplitStepKeepsItsOrder) {
  const auto trained = [](std::uint64_t bytes_max) {
    Stage stage;
    stage.begin();
    for (const messages::GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
    stage.link.bytes_max = bytes_max;
    stage.score_everything();
    std::vector<GroupId> groups;
    for (const messages::TrainStep& part : Stage::only<messages::TrainStep>(stage.to_learner))
      for (const messages::TrainGroup& group : part.groups) groups.push_back(group.group);
    return groups;
  };
  EXPECT_EQ(trained(80), trained(actor::kBytesUnlimited));
  EXPECT_EQ(trained(80).size(), 4u);
}

TEST(ExchangeOutgoing, WhatNoLinkCarriesFailsTheJobWithItsSize) {
  Stage stage;
  stage.link.bytes_max = 10;
  stage.begin();
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kFailed);
  EXPECT_NE(stage.ended()->reason.find(" bytes, and it is for job-1/rollout/0"), std::string::npos)
      << stage.ended()->reason;
}

TEST(ExchangeOutgoing, AFullLinkLosesNothing) {
  Stage stage;
  stage.begin();
  const auto works = stage.assigned();
  stage.link.full = true;
  for (const messages::GroupWork& work : works) stage.generate(work, PolicyVersion{0});
  EXPECT_TRUE(stage.to_reward.empty());
  stage.link.full = false;
  stage.run(std::chrono::milliseconds(100));
  std::size_t groups = 0;
  for (const messages::ScoreGroups& part : Stage::only<messages::ScoreGroups>(stage.to_reward))
    groups += part.groups.size();
  EXPECT_EQ(groups, works.size());
}

TEST(ExchangeOutgoing, AFullControllerHearsOfTheEndOnceItHasRoom) {
  Stage stage;
  stage.begin();
  stage.to_controller.clear();
  stage.link.full = true;
  stage.tell(messages::RewardTrouble{.from = kReward, .what = "its program ended"});
  stage.tell(messages::EndJob{messages::JobOutcome::kFailed, "a role died"});
  EXPECT_TRUE(stage.to_controller.empty());
  stage.link.full = false;
  stage.run(std::chrono::milliseconds(100));
  ASSERT_EQ(stage.to_controller.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<messages::ExchangeEvent>(stage.to_controller[0]))
      << "in their order";
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->reason, "a role died");
}

}  // namespace
}  // namespace tandem::exchange
