// The exchange against peers that the test plays: the messages that it sends, their order, and its
// handling of late, wrong and missing answers. Whole runs are simulation_test's.
#include "actors/exchange/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;

TEST(Exchange, LeasesOnlyToRolloutsWithTrainedWeights) {
  Stage stage;
  stage.tell(messages::LearnerUp{kLearner, {}});
  stage.tell(messages::Published{kLearner,
                                 {.version = kInitialWeights, .oldest_retained = kInitialWeights}});
  stage.tell(messages::RolloutUp{kRollout, 100});
  stage.tell(messages::Installed{kRollout, kInitialWeights});  // to evaluate them, say
  stage.tell(messages::WarmStarted{.from = kLearner,
                                   .publication = {PolicyVersion{0}, kInitialWeights, 100}});
  EXPECT_TRUE(stage.assigned().empty());
  stage.install(kRollout, PolicyVersion{0});
  EXPECT_EQ(stage.assigned().size(), 12u);  // (p + L + 1) B
}

TEST(Exchange, DeadLivesAreNotGivenWorkHoweverLateTheySpeak) {
  Stage stage;
  stage.begin();
  stage.tell(messages::ActorDown{kRollout, "killed"});
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kAdmitted), 12) << "EX-6";
  stage.to_rollout.clear();
  stage.tell(messages::RolloutUp{kRollout, 100});  // it was on its way when its sender died
  stage.install(kRollout, PolicyVersion{0});
  EXPECT_TRUE(stage.to_rollout.empty()) << "EX-6";
  stage.tell(messages::DrainActor{{"job-1/rollout/1", Incarnation{9}}, 1000});  // not up yet
  EXPECT_EQ(Stage::only<messages::ActorDrained>(stage.to_controller).size(), 1u);
  stage.tell(messages::RolloutUp{{"job-1/rollout/1", Incarnation{9}}, 100});
  EXPECT_TRUE(stage.to_rollout.empty()) << "EX-6";
  stage.tell(messages::RolloutUp{{kRollout.name, Incarnation{10}}, 100});
  EXPECT_FALSE(stage.to_rollout.empty());
}

TEST(Exchange, LateAnswersAreRefusedAndTheirPayloadsReleased) {
  Stage stage;
  stage.begin();
  const auto works = stage.assigned();
  stage.tell(messages::ActorDown{kRollout, "killed"});
  stage.generate(works[0], PolicyVersion{0});
  EXPECT_EQ(stage.payload_store.size(), 0u);
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kGenerated), 0);
}

TEST(Exchange, GroupOlderThanItsLeaseSaysIsGeneratedAgainAndFreesItsPlace) {
  Stage stage;
  stage.begin();
  const messages::GroupWork work = stage.assigned()[0];
  stage.to_rollout.clear();
  stage.generate(work, kInitialWeights);  // due says version 0 at least
  const auto again = stage.assigned();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].group, work.group);
  EXPECT_GT(again[0].attempt, work.attempt);
  EXPECT_EQ(stage.payload_store.size(), 0u);
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kRolling), 12);
}

TEST(Exchange, SilentHoldersLoseTheirLeasesThoughNobodySpeaks) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.rollout_lease = 30s;
  Stage stage(job);
  stage.begin();
  const std::size_t assigned = stage.assigned().size();
  stage.run(29s);
  stage.tell(messages::RolloutStats{.from = kRollout, .generation_tokens = 5});  // progress
  stage.run(29s);
  EXPECT_EQ(stage.assigned().size(), assigned);
  stage.tell(messages::RolloutStats{.from = kRollout, .generation_tokens = 5});  // none
  stage.run(2s);
  EXPECT_EQ(Stage::only<messages::HandBack>(stage.to_rollout).size(), 12u);
  EXPECT_EQ(stage.assigned().size(), assigned * 2);
}

TEST(Exchange, ASilentRolloutThatNobodyReplacesKeepsItsLeases) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.rollout_lease = 30s;
  Stage stage(job);
  stage.begin();
  const auto works = stage.assigned();
  stage.tell(messages::ActorSilent{kRollout});
  stage.run(5min);
  EXPECT_TRUE(Stage::only<messages::HandBack>(stage.to_rollout).empty());
  stage.tell(messages::ActorSilent{kRollout, false});
  stage.generate(works[0], PolicyVersion{0});
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kGenerated) +
                stage.exchange->core().ledger().count(scheduler::GroupState::kScoring),
            1)
      << "what it has done meanwhile is taken";
}

TEST(Exchange, TheLeasesOfASilentRolloutGoToAnotherThatIsHeard) {
  Stage stage;
  stage.begin();
  const auto works = stage.assigned();
  stage.tell(messages::ActorSilent{kRollout});
  stage.to_rollout.clear();
  const ActorId second{"job-1/rollout/1", Incarnation{4}};
  stage.tell(messages::RolloutUp{second, kCapacity});
  stage.install(second, PolicyVersion{0});
  EXPECT_EQ(stage.assigned().size(), works.size());
  const auto back = Stage::only<messages::HandBack>(stage.to_rollout);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].groups.size(), works.size());
  stage.tell(messages::ActorSilent{kRollout, false});
  stage.generate(works[0], PolicyVersion{0});  // it was under way
  EXPECT_EQ(stage.exchange->core().ledger().count(scheduler::GroupState::kGenerated), 0);
  EXPECT_TRUE(stage.refused.empty()) << "a late answer is no lie";
}

TEST(Exchange, CheckpointIsAskedForAgainWhenTheLearnerIsBackAtItsStep) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.save.steps = 2;
  Stage stage(job);
  stage.begin();
  stage.train(2);
  ASSERT_EQ(Stage::only<messages::SaveCheckpoint>(stage.to_learner).size(), 1u);
  stage.tell(messages::ActorDown{kLearner, "killed"});
  const ActorId next{kLearner.name, Incarnation{4}};
  stage.to_learner.clear();
  stage.tell(stage.learner_up(next, StepId{0}));
  EXPECT_TRUE(Stage::only<messages::SaveCheckpoint>(stage.to_learner).empty()) << "it is at step 0";
  EXPECT_EQ(stage.step_sent()->step, StepId{0});
  EXPECT_FALSE(stage.step_sent()->publish);
  stage.commit(next);
  EXPECT_EQ(stage.step_sent()->step, StepId{1});
  stage.commit(next);
  const auto saves = Stage::only<messages::SaveCheckpoint>(stage.to_learner);
  ASSERT_EQ(saves.size(), 1u) << "EX-2";
  EXPECT_EQ(saves[0].step, StepId{2});
  EXPECT_EQ(stage.exchange->core().ledger().counters().retrained, 8);
  EXPECT_FALSE(stage.ended());
}

// Rollouts that have the newest version are told as well: one may be copying it from the former
// place.
TEST(Exchange, TheSourceOfALearnersNextIncarnationIsToldToAllRollouts) {
  const wire::WeightSource former{"host", "10.0.0.1:1", "key", "other key"};
  wire::WeightSource later = former;
  later.endpoint = "10.0.0.1:2";
  Stage stage;
  stage.tell(messages::LearnerUp{kLearner, {}, former});
  stage.tell(messages::Published{kLearner,
                                 {.version = kInitialWeights, .oldest_retained = kInitialWeights}});
  stage.tell(
      messages::WarmStarted{.from = kLearner, .publication = {PolicyVersion{0}, kInitialWeights}});
  stage.tell(messages::CheckpointSaved{kLearner, StepId{0}, "step-0", "sha"});
  stage.tell(messages::RolloutUp{kRollout, kCapacity});
  auto offers = Stage::only<messages::NewVersion>(std::exchange(stage.to_rollout, {}));
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].source, former);
  stage.tell(messages::ActorDown{kLearner, "killed"});
  stage.tell(messages::LearnerUp{{kLearner.name, Incarnation{4}}, StepId{0}, later});
  offers = Stage::only<messages::NewVersion>(stage.to_rollout);
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].version, PolicyVersion{0});
  EXPECT_EQ(offers[0].source, later);
}

TEST(Exchange, LearnerWhoseCheckpointsAreGoneEndsTheJob) {
  for (const std::optional<StepId> checkpoint : {std::optional<StepId>{}, {StepId{9}}}) {
    Stage stage;
    stage.begin();
    stage.train(1);
    stage.tell(messages::ActorDown{kLearner, "killed"});
    stage.tell(stage.learner_up({kLearner.name, Incarnation{4}}, checkpoint));
    ASSERT_TRUE(stage.ended());
    EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kFailed);
    EXPECT_EQ(stage.exchange->core().ledger().counters().live, 0);
  }
}

TEST(Exchange, TheResultSaysWhyTheRunEnded) {
  Stage stage;
  stage.begin();
  stage.tell(messages::EndJob{messages::JobOutcome::kFailed, "the reward has no answer"});
  const nlohmann::json result = parse_json(stage.record.result_json.value());
  EXPECT_EQ(result["state"], "Failed");
  EXPECT_EQ(result["reason"], "JobFailed");
  EXPECT_EQ(result["message"], "the reward has no answer");
}

TEST(Exchange, LearnerThatCannotComeUpEndsTheJobWithItsReason) {
  Stage stage;
  stage.tell(messages::LearnerFailed{kLearner, "cannot resume from checkpoint step-30"});
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kFailed);
  EXPECT_NE(stage.ended()->reason.find("step-30"), std::string::npos);
}

TEST(Exchange, NothingBeginsAfterTheEnd) {
  Stage stage;
  stage.tell(messages::LearnerUp{kLearner, {}});
  stage.tell(messages::EndJob{messages::JobOutcome::kCancelled, "cancelled by the user"});
  ASSERT_TRUE(stage.ended());
  const std::size_t sent = stage.to_learner.size();
  stage.tell(messages::Published{kLearner,
                                 {.version = kInitialWeights, .oldest_retained = kInitialWeights}});
  stage.tell(messages::WarmStarted{.from = kLearner,
                                   .publication = {PolicyVersion{0}, kInitialWeights, 1}});
  stage.tell(messages::RolloutUp{kRollout, 100});
  stage.tell(messages::EndJob{messages::JobOutcome::kFailed, "again"});
  EXPECT_EQ(stage.to_learner.size(), sent);
  EXPECT_TRUE(stage.to_rollout.empty());
  EXPECT_EQ(Stage::only<messages::JobEnded>(stage.to_controller).size(), 1u);
  EXPECT_EQ(parse_json(*stage.record.result_json)["state"], "Cancelled");
}

// Generates groups and answers each with these scores, until the job ends. Returns the number of
// groups that were answered.
std::int64_t fail_all(Stage& stage, const std::vector<messages::TrajectoryScore>& scores) {
  std::int64_t answered = 0;
  for (std::size_t done = 0; !stage.ended();) {
    const auto all = stage.assigned();
    EXPECT_LT(done, all.size());
    if (done == all.size()) break;
    for (; done < all.size(); ++done) stage.generate(all[done], PolicyVersion{0});
    for (const messages::RewardInbox& message : std::exchange(stage.to_reward, {}))
      if (const auto* work = std::get_if<messages::ScoreGroups>(&message))
        for (const messages::GroupToScore& group : work->groups) {
          if (stage.ended()) break;
          stage.tell(messages::GroupsScored{kReward, {{group.group, group.attempt, scores}}});
          ++answered;
        }
  }
  return answered;
}

TEST(Exchange, ARewardThatHasNeverWorkedEndsTheJobSoonAndOneThatHasEndsItLater) {
  const messages::ScoreFailed is_nan{"score is NaN; a score must be a finite number"};
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.budget.groups_per_step = 16;
  Stage never(job);
  never.begin();
  EXPECT_EQ(fail_all(never, {is_nan, is_nan}), kFirstFailuresMax / 2) << "two completions a group";
  ASSERT_TRUE(never.ended());
  EXPECT_EQ(never.ended()->outcome, messages::JobOutcome::kFailed);
  EXPECT_EQ(never.ended()->reason,
            "the reward has never worked: each of the first 64 completions failed; the last: "
            "score is NaN; a score must be a finite number");

  Stage half(job);
  half.begin();
  EXPECT_EQ(fail_all(half, {is_nan, messages::Scored{1}}), 8 * 16) << "eight batches";
  ASSERT_TRUE(half.ended());
  EXPECT_NE(half.ended()->reason.find("128 groups failed in a row"), std::string::npos)
      << half.ended()->reason;
}

TEST(Exchange, ATroubledRewardProgramIsAnEventAWaitAndPartOfTheFinalError) {
  Stage stage;
  stage.begin();
  stage.tell(messages::RewardTrouble{.from = kReward,
                                     .kind = messages::TroubleKind::kEnded,
                                     .what = "the program exited with code 1",
                                     .attempt = 1,
                                     .attempts = 3,
                                     .stderr_tail = {"NameError: x"},
                                     .log = "/run/logs/reward.0.2.log"});
  const auto events = Stage::only<messages::ExchangeEvent>(stage.to_controller);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].subject, kReward.name);
  EXPECT_NE(events[0].message.find("attempt 1 of 3"), std::string::npos) << events[0].message;
  EXPECT_NE(events[0].message.find("NameError: x"), std::string::npos) << events[0].message;

  std::optional<messages::ExchangeReport> report;
  const actor::ReplyTo<messages::ExchangeReport> reply(
      [&](Result<messages::ExchangeReport> answer) { report = *std::move(answer); });
  stage.tell(actor::Ask<messages::GetExchangeReport>{{}, reply});
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->status.troubles.size(), 1u);
  EXPECT_TRUE(std::ranges::any_of(report->status.waits, [](const messages::Wait& wait) {
    return wait.who == kReward.name && wait.detail.find("NameError") != std::string::npos;
  }));

  fail_all(stage, {messages::ScoreFailed{"the program exited with code 1"}, messages::Scored{0}});
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kFailed);
  for (const char* part : {"failed in a row", "NameError: x", "/run/logs/reward.0.2.log"})
    EXPECT_NE(stage.ended()->reason.find(part), std::string::npos) << stage.ended()->reason;
}

controller::SimulatedJob saving_job() {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.save_on_cancel = 2min;
  return job;
}

void cancel(Stage& stage) {
  stage.tell(messages::EndJob{messages::JobOutcome::kCancelled, "cancelled by the user"});
}

TEST(Exchange, ACancelledJobEndsOnceWhatItTrainedIsSaved) {  // EX-5
  Stage stage(saving_job());
  stage.begin();
  stage.train(3);
  cancel(stage);
  EXPECT_FALSE(stage.ended());
  const auto notices = Stage::only<messages::JobProgress>(stage.to_controller);
  EXPECT_EQ(notices.back().phase, messages::JobPhase::kStopping);
  const bool training = stage.step_sent()->step == StepId{3};
  if (training) stage.commit();  // the step under way is finished first
  const auto saves = Stage::only<messages::SaveCheckpoint>(stage.to_learner);
  ASSERT_EQ(saves.size(), 1u);
  EXPECT_EQ(saves[0].step, StepId{training ? 4 : 3});
  EXPECT_FALSE(stage.ended());
  stage.tell(messages::CheckpointSaved{kLearner, saves[0].step, "step", "sha"});
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kCancelled);
  EXPECT_EQ(parse_json(*stage.record.result_json)["weights_sha256"], "sha");
}

TEST(Exchange, TheSaveOfACancelledJobHasADeadlineAndAnAbleLearner) {  // EX-5
  for (const bool learner_dies : {true, false}) {
    Stage stage(saving_job());
    stage.begin();
    stage.train(3);
    cancel(stage);
    EXPECT_FALSE(stage.ended());
    if (learner_dies)
      stage.tell(messages::ActorDown{kLearner, "killed"});
    else
      stage.run(3min);
    ASSERT_TRUE(stage.ended());
    EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kCancelled);
  }
  Stage failing(saving_job());
  failing.begin();
  failing.train(3);
  cancel(failing);
  failing.tell(messages::LearnerFailed{kLearner, "the disk is full"});
  ASSERT_TRUE(failing.ended());
  EXPECT_EQ(failing.ended()->outcome, messages::JobOutcome::kCancelled);
  EXPECT_EQ(failing.ended()->reason, "was being cancelled when: job-1/learner/0: the disk is full");
}

TEST(Exchange, ACancelledJobThatCannotBeRecordedFailsAndSaysThatItWasBeingCancelled) {
  Stage stage(saving_job());
  stage.begin();
  stage.train(3);
  stage.record.disk_full = true;
  cancel(stage);
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kFailed);
  EXPECT_TRUE(stage.ended()->reason.starts_with("was being cancelled when: "))
      << stage.ended()->reason;
}

// A resumed run would begin behind the step, and its line would be missing for ever.
TEST(Exchange, AStepWhoseFiguresCannotBeWrittenIsNotSaved) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.save.steps = 2;
  for (const bool full : {false, true}) {
    Stage stage(job);
    stage.begin();
    stage.train(1);
    stage.record.files_full = full;
    stage.train(2);
    bool asked = false;
    for (const messages::SaveCheckpoint& save :
         Stage::only<messages::SaveCheckpoint>(stage.to_learner))
      asked |= save.step == StepId{2};
    EXPECT_EQ(asked, !full);
    EXPECT_EQ(stage.ended().has_value(), full);
    if (!full) continue;
    EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kFailed);
    EXPECT_EQ(stage.ended()->reason, "cannot write metrics.jsonl: the disk is full");
  }
}

TEST(Exchange, WithNothingTrainedOrWithoutTheKeyACancelledJobEndsAtOnce) {
  Stage begun(saving_job()), keyless;
  begun.begin();
  cancel(begun);
  EXPECT_TRUE(begun.ended());
  keyless.begin();
  keyless.train(3);
  cancel(keyless);
  EXPECT_TRUE(keyless.ended());
}

// Two rollouts evaluate version 0; one dies when the other has moved on to version 1. The prompts
// go to the other all the same, and version 0 is retained for it.
TEST(Exchange, EvaluationGoesBackToItsVersion) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.budget.max_staleness = job.exchange.budget.lookahead = 0;
  job.validation_prompts = 6;
  Stage stage(job);
  stage.begin();  // the rollout has all six prompts
  const auto first = Stage::only<messages::Evaluate>(stage.to_rollout);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].version, PolicyVersion{0});
  stage.train(1);  // with K = 0 two versions are held: 0 and 1
  EXPECT_EQ(stage.step_sent()->retain, PolicyVersion{0});
  stage.tell(messages::ActorDown{kRollout, "killed"});
  const ActorId other{kRollout.name, Incarnation{8}};
  stage.to_rollout.clear();
  stage.tell(messages::RolloutUp{other, 100});
  stage.install(other, PolicyVersion{1});
  const auto second = Stage::only<messages::Evaluate>(stage.to_rollout);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].version, PolicyVersion{0});
  EXPECT_EQ(second[0].prompts.size(), 6u);
  for (const messages::GroupWork& work : stage.assigned()) {
    messages::GroupHeader header{
        .group = work.group, .attempt = work.attempt, .payload = stage.payload_store.put("")};
    header.trajectories.assign(2, {.oldest = PolicyVersion{1}, .newest = PolicyVersion{1}});
    stage.tell(messages::Generated{other, {header}});
  }
  stage.score_everything();
  EXPECT_EQ(stage.step_sent()->step, StepId{0}) << "EX-3: version 2 has no place yet";
  messages::Evaluated done{.from = other, .evaluation = second[0].evaluation};
  for (std::int32_t i = 0; i < 6; ++i) done.completions.push_back({i, 0, "text", false});
  stage.tell(done);
  EXPECT_EQ(stage.step_sent()->step, StepId{1});
}

TEST(Exchange, TheNewestStepsFiguresAreReported) {
  Stage stage;
  stage.begin();
  std::optional<messages::ExchangeReport> report;
  const auto ask = [&] {
    const actor::ReplyTo<messages::ExchangeReport> reply(
        [&](Result<messages::ExchangeReport> answer) { report = *std::move(answer); });
    stage.tell(actor::Ask<messages::GetExchangeReport>{{}, reply});
  };
  ask();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->last_step) << "none is committed";
  for (const messages::GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.score_everything();
  stage.commit(kLearner, {.loss = -0.5,
                          .grad_norm = 3,
                          .lr = 1e-3,
                          .entropy = 1.5,
                          .ppo_kl = 0.01,
                          .logprob_diff_max_at_staleness_0 = 0.25,
                          .tokens_at_staleness_0 = 7});
  ask();
  ASSERT_TRUE(report && report->last_step);
  const messages::StepFigures& figures = *report->last_step;
  const nlohmann::json line = parse_json(stage.record.metrics_lines.back());
  EXPECT_EQ(line["critic/rewards/mean"], figures.reward_mean);
  EXPECT_EQ(line["actor/loss"], figures.loss);
  EXPECT_EQ(line["actor/ppo_kl"], *figures.ppo_kl);
  EXPECT_EQ(line["actor/entropy"], *figures.entropy);
  EXPECT_EQ(line["actor/grad_norm"], figures.grad_norm);
  EXPECT_EQ(line["actor/lr"], figures.lr);
  EXPECT_EQ(figures.loss, -0.5);
  EXPECT_EQ(figures.logprob_diff_max_at_staleness_0, 0.25);
  stage.score_everything();
  stage.commit();
  ask();
  EXPECT_FALSE(report->last_step->logprob_diff_max_at_staleness_0) << "no token of staleness 0";
  EXPECT_FALSE(report->last_step->entropy) << "no token counts in the loss";
  const nlohmann::json without = parse_json(stage.record.metrics_lines.back());
  for (const char* key : {"actor/entropy", "actor/ppo_kl", "actor/pg_clipfrac", "actor/ratio_max"})
    EXPECT_FALSE(without.contains(key)) << key;
}

TEST(Exchange, AStepThatWasSkippedIsToldAndDoesNotSpoilTheFiguresAfterIt) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Stage stage;
  stage.begin();
  for (const messages::GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.score_everything();
  stage.commit(kLearner, {.loss = kInf,
                          .grad_norm = std::numeric_limits<double>::quiet_NaN(),
                          .tokens_trained = 6,
                          .skipped_in_row = 2,
                          .steps_skipped = 3,
                          .logprob_diff_max_at_staleness_0 = kInf,
                          .tokens_at_staleness_0 = 7});
  const nlohmann::json line = parse_json(stage.record.metrics_lines.back());
  ASSERT_TRUE(line.is_object()) << stage.record.metrics_lines.back();
  EXPECT_TRUE(line["actor/grad_norm"].is_null() && line["actor/loss"].is_null());
  EXPECT_EQ(line["tandem/steps_skipped"], 3);
  const auto events = Stage::only<messages::ExchangeEvent>(stage.to_controller);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].subject, "job-1");
  EXPECT_EQ(events[0].message,
            "step 1 was skipped: its gradient is not finite (norm nan, loss inf); skipped in a "
            "row: 2, in all: 3");
  const auto ask = [&] {
    std::optional<messages::ExchangeReport> report;
    const actor::ReplyTo<messages::ExchangeReport> reply(
        [&](Result<messages::ExchangeReport> answer) { report = *std::move(answer); });
    stage.tell(actor::Ask<messages::GetExchangeReport>{{}, reply});
    return report.value();
  };
  const auto waits_for_gradient = [](const messages::ExchangeReport& report) {
    return std::ranges::any_of(report.status.waits, [](const messages::Wait& wait) {
      return wait.waits_for == "a finite gradient" &&
             wait.detail.find("in a row: 2") != std::string::npos;
    });
  };
  EXPECT_EQ(ask().status.steps_skipped, 3u);
  EXPECT_TRUE(waits_for_gradient(ask()));
  // A later incarnation of the run reads the totals, and they go on.
  const auto totals = [&] { return stage.newest_totals(); };
  EXPECT_EQ(totals().trained.steps_skipped, 3u);
  EXPECT_EQ(totals().trained.logprob_diff_max_at_staleness_0, 0);
  stage.score_everything();
  stage.commit(kLearner, {.grad_norm = 1,
                          .steps_skipped = 3,
                          .logprob_diff_max_at_staleness_0 = 0.5,
                          .tokens_at_staleness_0 = 7});
  EXPECT_EQ(totals().trained.logprob_diff_max_at_staleness_0, 0.5);
  EXPECT_FALSE(waits_for_gradient(ask()));
  EXPECT_EQ(Stage::only<messages::ExchangeEvent>(stage.to_controller).size(), 1u);
}

// The line of a step tells the rewards of a batch, their spread, and how many groups teach nothing.
TEST(Exchange, AStepsLineTellsHowRewardsAndAdvantagesSpread) {
  Stage stage;
  stage.begin();
  stage.train(1, {.advantages = {0.5f, -0.5f, 1.5f, -1.5f}}, 3);
  const nlohmann::json line = parse_json(stage.record.metrics_lines.back());
  EXPECT_EQ(line["critic/rewards/mean"], 1.5);
  EXPECT_EQ(line["critic/rewards/min"], 0);
  EXPECT_EQ(line["critic/rewards/max"], 3);
  EXPECT_NEAR(line["critic/rewards/std"], std::sqrt(8 * 2.25 / 7), 1e-12);
  EXPECT_EQ(line["critic/advantages/mean"], 0);
  EXPECT_EQ(line["critic/advantages/min"], -1.5);
  EXPECT_EQ(line["critic/advantages/max"], 1.5);
  EXPECT_NEAR(line["critic/advantages/std"], std::sqrt(5.0 / 3), 1e-12);
  EXPECT_EQ(line["tandem/solve_all"], 0) << "one of two completions is wrong";
  EXPECT_EQ(line["tandem/solve_none"], 0);
  stage.train(20, {}, 0);
  EXPECT_EQ(parse_json(stage.record.metrics_lines.back())["tandem/solve_none"], 1);
}

TEST(Exchange, StepsWithoutAGradientAreCountedAndAreNotSkipped) {
  Stage stage;
  stage.begin();
  stage.train(3, {.updates_without_gradient = 2});
  stage.train(4);
  const nlohmann::json line = parse_json(stage.record.metrics_lines.back());
  EXPECT_EQ(line["tandem/steps_without_gradient"], 6);
  EXPECT_EQ(line["tandem/steps_skipped"], 0);
  EXPECT_TRUE(Stage::only<messages::ExchangeEvent>(stage.to_controller).empty());
  EXPECT_EQ(stage.newest_totals().trained.steps_without_gradient, 6u)
      << "a later incarnation goes on from them";
}

TEST(Exchange, ACollapseOfThePolicyIsToldOnce_CW1) {
  Stage stage;
  stage.begin();
  stage.train(8, {.entropy = 2.2, .ppo_kl = 0.01});
  EXPECT_TRUE(Stage::only<messages::ExchangeEvent>(stage.to_controller).empty());
  stage.train(19, {.entropy = 0.25, .ppo_kl = 0.5}, 0);
  const auto events = Stage::only<messages::ExchangeEvent>(stage.to_controller);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].subject, "job-1");
  for (const char* figure : {"collapsed", "entropy is 0.", "2.2 at the start", "reward 0", "0.5"})
    EXPECT_NE(events[0].message.find(figure), std::string::npos) << events[0].message;
}

TEST(Exchange, TheWarmStartsSkippedStepsAreTold) {
  Stage stage;
  stage.tell(messages::LearnerUp{kLearner, {}});
  for (const auto& [step, skipped] : {std::pair(1, 0u), std::pair(9, 4u), std::pair(11, 4u)})
    stage.tell(messages::WarmStartProgress{
        .from = kLearner, .step = step, .steps_max = 20, .steps_skipped = skipped});
  const auto events = Stage::only<messages::ExchangeEvent>(stage.to_controller);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NE(events[0].message.find("not finite: 4 by step 9"), std::string::npos)
      << events[0].message;
}

}  // namespace
}  // namespace tandem::exchange
