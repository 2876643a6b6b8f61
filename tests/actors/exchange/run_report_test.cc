// Waits tell for whom, since when and how far.
#include "actors/exchange/run_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "actors/exchange/evaluation_parts.h"
#include "actors/exchange/work_totals.h"
#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;

TEST(RunReport, WaitsTellHowFarAnEvaluationIsAndSinceWhen) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 8;
  Stage stage(job);
  stage.begin();
  stage.run(3s);
  const auto works = Stage::only<messages::Evaluate>(stage.to_rollout);
  ASSERT_FALSE(works.empty());
  messages::Evaluated some{
      .from = kRollout, .evaluation = works[0].evaluation, .completions = {{.index = 0}}};
  stage.tell(some);
  for (const messages::ScoreTexts& text : Stage::only<messages::ScoreTexts>(stage.to_reward))
    stage.tell(messages::TextsScored{kReward, text.evaluation, {{0, 0, messages::Scored{1}}}});
  stage.run(2s);
  const auto waits = stage.exchange->core().report(stage.executor.now()).status.waits;
  const auto of = [&](const std::string& what) {
    return *std::ranges::find_if(waits, [&](const messages::Wait& wait) {
      return wait.waits_for.find(what) != std::string::npos;
    });
  };
  EXPECT_EQ(of("evaluation").waits_for, "evaluation before (1 of 8 completions)");
  EXPECT_NEAR(of("evaluation").since_s, 5, 0.1);
  EXPECT_EQ(of("scored groups").detail,
            "TooFewScored: the rollouts also generate evaluation before (1 of 8 completions)");
}

// Of commits, of answers of evaluations, or of the time since a job began or was taken up.
TEST(RunReport, TellsHowLongThereWasNoProgress) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 8;
  Stage stage(job);
  const auto status = [&] { return stage.exchange->core().report(stage.executor.now()).status; };
  const auto since = [&] { return status().since_progress_s.value_or(-1); };
  stage.begin();
  EXPECT_FALSE(status().step_s) << "nothing is trained yet";
  stage.run(3s);
  EXPECT_NEAR(since(), 3, 0.1);
  const auto works = Stage::only<messages::Evaluate>(stage.to_rollout);
  ASSERT_FALSE(works.empty());
  stage.tell(messages::Evaluated{
      .from = kRollout, .evaluation = works[0].evaluation, .completions = {{.index = 0}}});
  EXPECT_NEAR(since(), 0, 0.1);
  stage.run(4s);
  EXPECT_NEAR(since(), 4, 0.1);
  stage.train(1);
  EXPECT_NEAR(since(), 0, 0.1);
  EXPECT_NEAR(status().step_s.value_or(0), 7, 0.1) << "the mean of the run";
  stage.run(100s);
  EXPECT_NEAR(since(), 100, 0.1);
  stage.follow();
  stage.run(2s);
  EXPECT_NEAR(since(), 2, 0.1) << "what was before is not known";
}

const messages::Wait* wait_of(const std::vector<messages::Wait>& waits, const std::string& who) {
  const auto found = std::ranges::find(waits, who, &messages::Wait::who);
  return found == waits.end() ? nullptr : &*found;
}

// From the learner by the group that is missing to the actor that has it.
TEST(RunReport, TheGroupThatAStepWaitsForIsFollowedToItsHolder) {
  Stage stage;
  stage.begin();
  const std::vector<GroupWork> works = stage.assigned();
  ASSERT_FALSE(works.empty());
  const std::string group = "group " + std::to_string(works.front().group.value);
  const auto now = [&] {
    const auto waits = stage.exchange->core().report(stage.executor.now()).status.waits;
    const messages::Wait* wait = wait_of(waits, group);
    return wait ? *wait : messages::Wait{.who = "none"};
  };
  stage.run(4s);
  EXPECT_EQ(now().waits_for, kRollout.name + " to generate it");
  EXPECT_NEAR(now().since_s, 4, 0.1);
  EXPECT_NEAR(now().deadline_s.value_or(0), seconds(stage.job.exchange.rollout_lease) - 4, 0.1);
  stage.tell(messages::RolloutStats{.from = kRollout,
                                    .first = messages::GroupProgress{works.front().group, 39, 64}});
  EXPECT_NE(now().detail.find("39 of at most 64 tokens; due in step "), std::string::npos)
      << now().detail;
  stage.run(5s);
  EXPECT_NE(now().detail.find("it has said nothing for 5 s"), std::string::npos) << now().detail;
  stage.generate(works.front(), PolicyVersion{0});
  stage.run(2s);
  EXPECT_EQ(now().waits_for, kReward.name + " to score it");
  EXPECT_NEAR(now().since_s, 2, 0.1);
  stage.score_everything();
  EXPECT_EQ(now().who, "none") << "another group is the next that is missing";
}

const messages::Wait* wait_for(const std::vector<messages::Wait>& waits, const std::string& what) {
  const auto found = std::ranges::find(waits, what, &messages::Wait::waits_for);
  return found == waits.end() ? nullptr : &*found;
}

TEST(RunReport, TheFirstPublicationIsAWait) {
  Stage stage;
  const auto now = [&] { return stage.exchange->core().report(stage.executor.now()).status.waits; };
  const std::string publishes = kLearner.name + " to publish the weights that it holds";
  stage.tell(messages::LearnerUp{kLearner, {}});
  stage.run(3s);
  const auto waits = now();
  const messages::Wait* wait = wait_for(waits, publishes);
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->who, "job-1");
  EXPECT_NEAR(wait->since_s, 3, 0.1);
  EXPECT_EQ(wait->detail, "rollouts can begin with these");
  stage.tell(messages::Published{kLearner, stage.publication(kInitialWeights, kInitialWeights)});
  EXPECT_EQ(wait_for(now(), publishes), nullptr);
}

TEST(RunReport, ACheckpointAmidTrainingIsAWait) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.save.steps = 1;
  Stage stage(job);
  stage.begin();
  stage.train(1);
  stage.run(2s);
  const auto now = [&] { return stage.exchange->core().report(stage.executor.now()).status.waits; };
  const auto waits = now();
  const std::string saves = kLearner.name + " to save checkpoint 1";
  const messages::Wait* wait = wait_for(waits, saves);
  ASSERT_NE(wait, nullptr);
  EXPECT_NEAR(wait->since_s, 2, 0.1);
  EXPECT_EQ(wait->detail, "the next step waits for it");
  stage.tell(messages::CheckpointSaved{kLearner, StepId{1}, "step-1", "sha"});
  EXPECT_EQ(wait_for(now(), saves), nullptr);
}

TEST(RunReport, AnEvaluationIsFollowedToTheActorThatHasPartOfIt) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 8;
  Stage stage(job);
  stage.begin();
  stage.run(3s);
  const auto now = [&] {
    const auto waits = stage.exchange->core().report(stage.executor.now()).status.waits;
    const messages::Wait* wait = wait_of(waits, "evaluation before");
    return wait ? *wait : messages::Wait{.who = "none"};
  };
  EXPECT_EQ(now().waits_for, kRollout.name + " to generate 8 prompts");
  EXPECT_NEAR(now().since_s, 3, 0.1);
  const Duration lease = stage.job.exchange.rollout_lease;
  EXPECT_NEAR(now().deadline_s.value_or(0), seconds(lease + lease / kPartLooks) - 3, 0.1);
  const auto works = Stage::only<messages::Evaluate>(stage.to_rollout);
  messages::Evaluated all{.from = kRollout, .evaluation = works.at(0).evaluation};
  for (std::int32_t index = 0; index < 8; ++index) all.completions.push_back({.index = index});
  stage.tell(all);
  EXPECT_EQ(now().waits_for, kReward.name + " to score its completions");
  messages::TextsScored scored{kReward, works[0].evaluation, {}};
  for (std::int32_t index = 0; index < 8; ++index)
    scored.scores.push_back({index, 0, messages::Scored{1}});
  stage.tell(scored);
  EXPECT_EQ(now().who, "none");
}

// A job in which the learner and its one rollout take turns: a second of each for a step.
class TakesTurns {
 public:
  Stage stage;

  explicit TakesTurns(const controller::SimulatedJob& job = one_at_a_time()) : stage(job) {
    stage.begin();
  }
  messages::JobStatus status() const {
    return stage.exchange->core().report(stage.executor.now()).status;
  }
  void step() {
    stage.run(1s);
    told_.generation_tokens += 24;
    told_.busy_seconds += 1;
    stage.tell(told_);
    const auto works = stage.assigned();
    for (; stage.works_done < works.size(); ++stage.works_done)
      stage.generate(works[stage.works_done],
                     PolicyVersion{stage.exchange->core().ledger().next_commit().value});
    stage.score_everything();
    stage.run(1s);
    StepReport report;
    report.tokens_trained = 24;
    stage.commit(kLearner, report);
  }
  static controller::SimulatedJob one_at_a_time() {
    controller::SimulatedJob job = controller::plain_job(1);
    job.exchange.budget.max_staleness = job.exchange.budget.lookahead = 0;
    job.exchange.save = {};
    return job;
  }

 private:
  messages::RolloutStats told_{.from = kRollout};
};

TEST(RunReport, TheRatesOfTheFleetAreMeasuredAndWhatTheyPredictIsShown) {
  TakesTurns run;
  run.step();
  EXPECT_FALSE(run.status().rates) << "of one step";
  run.step();
  ASSERT_TRUE(run.status().rates);
  EXPECT_EQ(run.status().rates->steps, 1);
  for (int i = 2; i < 12; ++i) run.step();
  const messages::JobStatus status = run.status();
  ASSERT_TRUE(status.rates && status.gap);
  EXPECT_EQ(status.rates->steps, 11);
  EXPECT_NEAR(status.rates->seconds, 22, 0.1);
  ASSERT_EQ(status.rates->rollouts.size(), 1u);
  EXPECT_EQ(status.rates->rollouts[0].actor, kRollout.name);
  EXPECT_NEAR(status.rates->rollouts[0].tokens_per_s, 24, 1e-6);
  EXPECT_NEAR(status.rates->rollouts[0].busy_fraction, 0.5, 0.01);
  EXPECT_NEAR(status.rates->step_seconds, 1, 0.01);
  EXPECT_NEAR(status.rates->completions_per_step, 8, 1e-6);
  EXPECT_NEAR(status.rates->trainer_idle_fraction, 0.5, 0.01);
  EXPECT_EQ(status.gap->rollouts, 1);
  EXPECT_NEAR(status.gap->trainer_idle_fraction, 0.5, 0.01);
  const messages::Wait* wait = wait_for(status.waits, "nothing, but its trainer is idle");
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->who, "job-1");
  EXPECT_EQ(wait->detail,
            "trainer idle 50 % (predicted 50 %): 4 rollouts would match it, 1 is up: tandem scale "
            "job-1 rollout=4");
  const nlohmann::json line = parse_json(run.stage.record.metrics_lines.back());
  EXPECT_NEAR(line.at("tandem/recent/trainer_idle_fraction").get<double>(), 0.5, 0.01);
  EXPECT_EQ(line.at("tandem/predicted/rollouts"), 4);
  // Of the newest steps, like the gauge of that name; the key without "recent" is of the whole run.
  EXPECT_EQ(line.at("tandem/recent/tokens_generated_per_trained"),
            status.rates->generated_per_trained);
}

// An evaluation that ends within a window is told with it.
TEST(RunReport, WindowsOfAnAutoscaledJobFollowEachOther) {
  controller::SimulatedJob job = TakesTurns::one_at_a_time();
  job.exchange.fleet_window_steps = 4;
  job.exchange.budget.steps_total = 100;
  job.exchange.val_before_train = false;
  job.exchange.test_freq = 14;
  job.validation_prompts = 1;
  TakesTurns run(job);
  const auto evaluate = [&](const messages::Evaluate& work) {
    run.stage.run(5s);
    run.stage.tell(messages::Evaluated{
        .from = kRollout, .evaluation = work.evaluation, .completions = {{.index = 0}}});
    run.stage.tell(messages::TextsScored{kReward, work.evaluation, {{0, 0, messages::Scored{1}}}});
  };
  for (int step = 1; step <= 27; ++step) {
    run.step();
    if (step == 14) evaluate(Stage::only<messages::Evaluate>(run.stage.to_rollout).at(0));
  }
  const auto told = Stage::only<messages::FleetMeasured>(run.stage.to_controller);
  ASSERT_EQ(told.size(), 2u) << "of 20 s each";
  EXPECT_EQ(told[0].rates.steps, 10);
  EXPECT_EQ(told[0].evaluation_fraction, 0);
  EXPECT_NEAR(told[1].rates.seconds, 21, 0.3);
  EXPECT_NEAR(told[1].evaluation_fraction, 5.0 / 21, 0.05);
  const auto status = run.status();
  const messages::Wait* wait = wait_for(status.waits, "nothing, but its trainer is idle");
  ASSERT_NE(wait, nullptr);
  EXPECT_NE(wait->detail.find("autoscale decides"), std::string::npos) << wait->detail;
}

// Nothing of it is in the journal.
TEST(RunReport, AnExchangeThatFollowsMeasuresTheFleetAnew) {
  TakesTurns run;
  for (int i = 0; i < 4; ++i) run.step();
  ASSERT_TRUE(run.status().rates);
  run.stage.follow();
  EXPECT_FALSE(run.status().rates);
}

TEST(RunReport, AFullDiskOfAnActorIsToldUntilThereIsRoom) {
  Stage stage;
  stage.begin();
  const auto status = [&] { return stage.exchange->core().report(stage.executor.now()).status; };
  EXPECT_FALSE(status().disk_full);
  const std::string full = "cannot write: no space left on device (/runs/j)";
  stage.tell(messages::LearnerWaits{kLearner, full});
  stage.run(3s);
  const auto waits = status().waits;
  const messages::Wait* wait = wait_of(waits, kLearner.name);
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->waits_for, "room on the disk");
  EXPECT_EQ(wait->detail, full);
  EXPECT_NEAR(wait->since_s, 3, 0.1);
  EXPECT_NE(status().disk_full.value_or("").find("job-1/learner/0: " + full), std::string::npos);
  stage.tell(messages::LearnerWaits{kLearner, {}});
  EXPECT_FALSE(status().disk_full);
  stage.tell(messages::RolloutStats{.from = kRollout, .no_room = full});
  EXPECT_NE(status().disk_full.value_or("").find("job-1/rollout/0: " + full), std::string::npos);
  stage.tell(messages::RolloutStats{.from = kRollout});
  EXPECT_FALSE(status().disk_full);
}

TEST(RunReport, AGroupThatNobodyHasWaitsForOneThatTakesIt) {
  Stage stage;
  stage.begin();
  stage.tell(messages::ActorDown{kRollout, "killed"});
  stage.run(2s);
  const auto waits = stage.exchange->core().report(stage.executor.now()).status.waits;
  const auto found =
      std::ranges::find(waits, "a rollout that takes it", &messages::Wait::waits_for);
  ASSERT_NE(found, waits.end());
  EXPECT_NEAR(found->since_s, 2, 0.1);
  EXPECT_FALSE(found->deadline_s);
  EXPECT_EQ(found->ended_by, "until one is free");
}

// As a run goes on, and as all that can be missing is missing.
TEST(RunReport, EveryWaitHasADeadlineOrNamesWhoEndsIt) {
  std::set<std::string> ends;
  const auto look_at = [&](Stage& stage) {
    stage.run(1s);
    for (const messages::Wait& wait :
         stage.exchange->core().report(stage.executor.now()).status.waits) {
      EXPECT_TRUE(wait.deadline_s || !wait.ended_by.empty()) << wait.who << ": " << wait.waits_for;
      if (!wait.deadline_s) ends.insert(wait.ended_by);
    }
  };
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.warm_start = true;
  Stage warm(job);
  look_at(warm);
  warm.tell(messages::LearnerUp{kLearner, {}});
  look_at(warm);
  warm.tell(messages::Published{kLearner, warm.publication(kInitialWeights, kInitialWeights)});
  look_at(warm);
  job.exchange.warm_start = false;
  job.exchange.save.steps = 1;
  job.validation_prompts = 8;
  Stage stage(job);
  stage.begin();
  look_at(stage);
  stage.tell(messages::LearnerWaits{kLearner, "no space left on device"});
  stage.tell(messages::ActorDown{kRollout, "killed"});
  look_at(stage);
  stage.tell(messages::ActorDown{kReward, "killed"});
  stage.tell(messages::ActorDown{kLearner, "killed"});
  look_at(stage);
  EXPECT_TRUE(ends.contains("by what it waits for"));
  EXPECT_TRUE(ends.contains("until one is free"));
  Stage followed;
  followed.begin();
  followed.follow();
  look_at(followed);
}

TEST(RunReport, ARolloutIsIdleSinceItLastWorked) {
  Stage stage;
  stage.begin();
  for (const messages::GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.run(4s);
  int idle = 0;
  for (const messages::Wait& wait :
       stage.exchange->core().report(stage.executor.now()).status.waits) {
    if (wait.waits_for != "groups to generate") continue;
    ++idle;
    EXPECT_NEAR(wait.since_s, 4, 0.1);
  }
  EXPECT_EQ(idle, 1);
}

TEST(RunReport, ARolloutIsNotTakenForIdleInTimeThatItHasNotReportedOn) {
  const ExchangeConfig config =
      controller::exchange_config(controller::plain_job(1), "job-1", false);
  RunFacts facts;
  facts.workers.by_role[messages::Role::kRollout][kRollout.name] = {.who = kRollout};
  Observed seen;
  seen.statistics.running_since = Time{} + 10s;
  WorkerSeen& rollout = seen.workers.by_actor[kRollout.name] = {.up = Time{} + 8s};
  EXPECT_EQ(rollout_idle_fraction({config, facts, seen, Time{} + 11s}), 0.0) << "nothing is known";
  rollout.stats.busy_seconds = 1.5;
  rollout.stats_at = Time{} + 12s;
  EXPECT_NEAR(rollout_idle_fraction({config, facts, seen, Time{} + 13s}), 0.25, 1e-9);
  rollout.stats_at = Time{} + 9s;  // in the warm start
  EXPECT_EQ(rollout_idle_fraction({config, facts, seen, Time{} + 13s}), 0.0);
}

TEST(RunReport, TheWarmStartHasARateAndAnEstimateAndIsTheLearnersWork) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.warm_start = true;
  Stage stage(job);
  stage.tell(messages::LearnerUp{kLearner, {}});
  stage.tell(messages::Published{kLearner, stage.publication(kInitialWeights, kInitialWeights)});
  const auto told = [&](std::int32_t step) {
    stage.tell(messages::WarmStartProgress{.from = kLearner, .step = step, .steps_max = 100});
    return stage.exchange->core().report(stage.executor.now());
  };
  EXPECT_FALSE(told(10).status.warm_start.steps_per_s) << "one report has no rate";
  stage.run(2s);
  const messages::ExchangeReport report = told(50);
  EXPECT_EQ(report.status.warm_start.step, 50);
  EXPECT_NEAR(report.status.warm_start.steps_per_s.value_or(0), 20, 0.1);
  EXPECT_NEAR(report.status.warm_start.eta_s.value_or(0), 2.5, 0.1);
  ASSERT_EQ(report.loads.size(), 1u);
  EXPECT_EQ(report.loads[0].load, "warm start 50/100");
  // A learner that died begins again: the steps that are lost do not count.
  stage.run(2s);
  EXPECT_FALSE(told(5).status.warm_start.steps_per_s);
  stage.run(1s);
  EXPECT_NEAR(told(15).status.warm_start.steps_per_s.value_or(0), 10, 0.1);
}

}  // namespace
}  // namespace tandem::exchange
