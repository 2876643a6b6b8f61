// The exchange against peers that the test plays: what it sends, in which order, and what it makes
// of late, wrong and missing answers. Whole runs are simulation_test's.
#include "actors/controller/exchange.h"

#include <gtest/gtest.h>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/json.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::actors {
namespace {

using namespace std::chrono_literals;
using runtime::Address;

const Sender kRollout{"job-1/rollout/0", Incarnation{1}};
const Sender kReward{"job-1/reward/0", Incarnation{2}};
const Sender kLearner{"job-1/learner/0", Incarnation{3}};

constexpr std::int32_t kCapacity = 24;  // the twelve groups of plain_job that may be admitted

// Takes what the exchange sends to one address and keeps it.
template <class Inbox>
class Mailbag final : public runtime::Target<Inbox> {
 public:
  explicit Mailbag(std::function<void(const Inbox&)> take) : take_(std::move(take)) {}
  runtime::Delivery post(Inbox message) override {
    take_(message);
    return runtime::Delivery::kAccepted;
  }

 private:
  const std::function<void(const Inbox&)> take_;
};

class Stage {
 public:
  explicit Stage(SimulatedJob what = plain_job(1)) : job(std::move(what)) {
    record.now_ms = [this] { return executor.now().ns / 1'000'000; };
    const ExchangeLinks links{.rollout = keep(to_rollout),
                              .reward = keep(to_reward),
                              .learner = keep(to_learner),
                              .controller = keep(to_controller)(Address{"controller", {}})};
    ref = system.spawn<Exchange>("exchange", [this, links] {
      auto made =
          std::make_unique<Exchange>(exchange_config(job, "job-1", false), links, record, shelf);
      exchange = made.get();
      return made;
    });
  }

  void tell(Exchange::Inbox message) {
    ASSERT_EQ(ref.tell(std::move(message)), runtime::Delivery::kAccepted);
    run();
  }
  void run(Duration time = Duration{0}) {
    executor.at(executor.now() + time, [] {});  // virtual time moves only to timers
    executor.run_until([] { return false; }, time);
    exchange->ledger().check_by_recount();
  }
  // All three up, version 0 published and installed.
  void begin() {
    tell(LearnerUp{kLearner, {}});
    tell(Published{kLearner, {.version = kInitialWeights, .oldest_retained = kInitialWeights}});
    tell(WarmStarted{.from = kLearner, .publication = {PolicyVersion{0}, kInitialWeights, 100}});
    tell(CheckpointSaved{kLearner, StepId{0}, "step-0", "sha"});
    tell(RolloutUp{kRollout, kCapacity});
    tell(RewardUp{kReward, 100});
    tell(Installed{kRollout, PolicyVersion{0}});
  }
  std::vector<GroupWork> assigned() const {
    std::vector<GroupWork> works;
    for (const RolloutInbox& message : to_rollout)
      if (const auto* assign = std::get_if<Assign>(&message))
        works.insert(works.end(), assign->groups.begin(), assign->groups.end());
    return works;
  }
  void generate(const GroupWork& work, PolicyVersion version) {
    GroupHeader header{.group = work.group, .attempt = work.attempt, .payload = shelf.put("x")};
    header.trajectories.assign(static_cast<std::size_t>(work.n),
                               {.oldest = version, .newest = version, .completion_tokens = 3});
    tell(Generated{kRollout, {header}});
  }
  void score_everything() {
    for (const RewardInbox& message : std::exchange(to_reward, {}))
      if (const auto* work = std::get_if<ScoreGroups>(&message))
        for (const GroupToScore& group : work->groups)
          tell(GroupsScored{kReward, {{group.group, group.attempt, {Scored{1}, Scored{0}}}}});
  }
  // Trains steps until `steps` are committed, all by version 0's rollout.
  void train(std::int64_t steps) {
    std::size_t done = 0;
    while (exchange->ledger().next_commit().value < steps) {
      const auto works = assigned();
      ASSERT_LT(done, works.size());
      for (; done < works.size(); ++done)
        generate(works[done], PolicyVersion{exchange->ledger().next_commit().value});
      score_everything();
      commit();
    }
  }
  const TrainStep* step_sent() const {
    for (auto it = to_learner.rbegin(); it != to_learner.rend(); ++it)
      if (const auto* step = std::get_if<TrainStep>(&*it)) return step;
    return nullptr;
  }
  void commit(const Sender& learner = kLearner) {
    ASSERT_NE(step_sent(), nullptr);
    const TrainStep step = *step_sent();
    const PolicyVersion version{step.step.value + 1};
    StepCommitted committed{.from = learner,
                            .step = step.step,
                            .checksum = 100 + static_cast<std::uint64_t>(version.value)};
    if (step.publish) committed.publication = Publication{version, step.retain};
    tell(committed);
    tell(Installed{kRollout, version});
  }
  std::optional<JobEnded> ended() const {
    for (const ExchangeNotices& notice : to_controller)
      if (const auto* end = std::get_if<JobEnded>(&notice)) return *end;
    return std::nullopt;
  }
  template <class M, class Inbox>
  static std::vector<M> only(const std::vector<Inbox>& messages) {
    std::vector<M> found;
    for (const Inbox& message : messages)
      if (const auto* one = std::get_if<M>(&message)) found.push_back(*one);
    return found;
  }

  const SimulatedJob job;
  runtime::SimulatedExecutor executor{1};
  MemoryRecord record;
  MemoryShelf shelf;
  std::vector<RolloutInbox> to_rollout;
  std::vector<RewardInbox> to_reward;
  std::vector<LearnerInbox> to_learner;
  std::vector<ExchangeNotices> to_controller;
  runtime::System system{executor, nullptr};
  runtime::Ref<Exchange::Inbox> ref;
  Exchange* exchange = nullptr;

 private:
  template <class Inbox>
  std::function<runtime::Ref<Inbox>(const Address&)> keep(std::vector<Inbox>& kept) {
    return [this, &kept](const Address& to) {
      return runtime::Ref<Inbox>(to,
                                 std::make_shared<Mailbag<Inbox>>([this, &kept](const Inbox& m) {
                                   check_journalled(m);
                                   kept.push_back(m);
                                 }));
    };
  }
  template <class Inbox>
  void check_journalled(const Inbox& message) const {  // EX-J
    if constexpr (std::is_same_v<Inbox, RolloutInbox>) {
      const auto* assign = std::get_if<Assign>(&message);
      if (!assign) return;
      for (const GroupWork& work : assign->groups) {
        const bool journalled =
            std::any_of(record.events.begin(), record.events.end(), [&](const JournalEvent& event) {
              return event.kind == "rolling" && event.lease == work.attempt;
            });
        EXPECT_TRUE(journalled) << "EX-J";
      }
    }
    if constexpr (std::is_same_v<Inbox, LearnerInbox>) {
      if (std::holds_alternative<SaveCheckpoint>(message)) {
        EXPECT_EQ(record.events_on_disk, record.events.size()) << "EX-J, and a power cut";
      }
    }
  }
};

TEST(Exchange, LeasesOnlyToRolloutsWithTrainedWeights) {
  Stage stage;
  stage.tell(LearnerUp{kLearner, {}});
  stage.tell(Published{kLearner, {.version = kInitialWeights, .oldest_retained = kInitialWeights}});
  stage.tell(RolloutUp{kRollout, 100});
  stage.tell(Installed{kRollout, kInitialWeights});  // to evaluate them, say
  stage.tell(WarmStarted{.from = kLearner, .publication = {PolicyVersion{0}, kInitialWeights, 1}});
  EXPECT_TRUE(stage.assigned().empty());
  stage.tell(Installed{kRollout, PolicyVersion{0}});
  EXPECT_EQ(stage.assigned().size(), 12u);  // (p + L + 1) B
}

TEST(Exchange, DeadLivesAreNotGivenWorkHoweverLateTheySpeak) {
  Stage stage;
  stage.begin();
  stage.tell(ActorDown{kRollout.actor, kRollout.incarnation, "killed"});
  EXPECT_EQ(stage.exchange->ledger().count(scheduler::GroupState::kAdmitted), 12) << "EX-L";
  stage.to_rollout.clear();
  stage.tell(RolloutUp{kRollout, 100});  // it was on its way when its sender died
  stage.tell(Installed{kRollout, PolicyVersion{0}});
  EXPECT_TRUE(stage.to_rollout.empty()) << "EX-L";
  stage.tell(DrainActor{"job-1/rollout/1", Incarnation{9}, 1000});  // not up yet
  EXPECT_EQ(Stage::only<ActorDrained>(stage.to_controller).size(), 1u);
  stage.tell(RolloutUp{{"job-1/rollout/1", Incarnation{9}}, 100});
  EXPECT_TRUE(stage.to_rollout.empty()) << "EX-L";
  stage.tell(RolloutUp{{kRollout.actor, Incarnation{10}}, 100});
  EXPECT_FALSE(stage.to_rollout.empty());
}

TEST(Exchange, LateAnswersAreRefusedAndTheirPayloadsReleased) {
  Stage stage;
  stage.begin();
  const auto works = stage.assigned();
  stage.tell(ActorDown{kRollout.actor, kRollout.incarnation, "killed"});
  stage.generate(works[0], PolicyVersion{0});
  EXPECT_EQ(stage.shelf.size(), 0u);
  EXPECT_EQ(stage.exchange->ledger().count(scheduler::GroupState::kGenerated), 0);
}

TEST(Exchange, GroupOlderThanItsLeaseSaysIsGeneratedAgainAndFreesItsPlace) {
  Stage stage;
  stage.begin();
  const GroupWork work = stage.assigned()[0];
  stage.to_rollout.clear();
  stage.generate(work, kInitialWeights);  // due says version 0 at least
  const auto again = stage.assigned();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].group, work.group);
  EXPECT_GT(again[0].attempt, work.attempt);
  EXPECT_EQ(stage.shelf.size(), 0u);
  EXPECT_EQ(stage.exchange->ledger().count(scheduler::GroupState::kRolling), 12);
}

TEST(Exchange, SilentHoldersLoseTheirLeasesThoughNobodySpeaks) {
  SimulatedJob job = plain_job(1);
  job.exchange.rollout_lease = 30s;
  Stage stage(job);
  stage.begin();
  const std::size_t assigned = stage.assigned().size();
  stage.run(29s);
  stage.tell(RolloutStats{.from = kRollout, .generation_tokens = 5});  // progress
  stage.run(29s);
  EXPECT_EQ(stage.assigned().size(), assigned);
  stage.tell(RolloutStats{.from = kRollout, .generation_tokens = 5});  // none
  stage.run(2s);
  EXPECT_EQ(Stage::only<HandBack>(stage.to_rollout).size(), 12u);
  EXPECT_EQ(stage.assigned().size(), assigned * 2);
}

TEST(Exchange, CheckpointIsAskedForAgainWhenTheLearnerIsBackAtItsStep) {
  SimulatedJob job = plain_job(1);
  job.exchange.save_freq = 2;
  Stage stage(job);
  stage.begin();
  stage.train(2);
  ASSERT_EQ(Stage::only<SaveCheckpoint>(stage.to_learner).size(), 1u);
  stage.tell(ActorDown{kLearner.actor, kLearner.incarnation, "killed"});
  const Sender next{kLearner.actor, Incarnation{4}};
  stage.to_learner.clear();
  stage.tell(LearnerUp{next, StepId{0}});
  EXPECT_TRUE(Stage::only<SaveCheckpoint>(stage.to_learner).empty()) << "it is at step 0";
  EXPECT_EQ(stage.step_sent()->step, StepId{0});
  EXPECT_FALSE(stage.step_sent()->publish);
  stage.commit(next);
  EXPECT_EQ(stage.step_sent()->step, StepId{1});
  stage.commit(next);
  const auto saves = Stage::only<SaveCheckpoint>(stage.to_learner);
  ASSERT_EQ(saves.size(), 1u) << "EX-C";
  EXPECT_EQ(saves[0].step, StepId{2});
  EXPECT_EQ(stage.exchange->ledger().counters().retrained, 8);
  EXPECT_FALSE(stage.ended());
}

TEST(Exchange, LearnerThatTrainsOtherwiseThanBeforeEndsTheJob) {
  Stage stage;
  stage.begin();
  stage.train(1);
  stage.tell(ActorDown{kLearner.actor, kLearner.incarnation, "killed"});
  const Sender next{kLearner.actor, Incarnation{4}};
  stage.tell(LearnerUp{next, StepId{0}});
  stage.tell(StepCommitted{.from = next, .step = StepId{0}, .checksum = 7});
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, JobOutcome::kFailed);
  EXPECT_NE(stage.ended()->reason.find("other weights"), std::string::npos);
}

TEST(Exchange, LearnerWhoseCheckpointsAreGoneEndsTheJob) {
  for (const std::optional<StepId> checkpoint : {std::optional<StepId>{}, {StepId{9}}}) {
    Stage stage;
    stage.begin();
    stage.train(1);
    stage.tell(ActorDown{kLearner.actor, kLearner.incarnation, "killed"});
    stage.tell(LearnerUp{{kLearner.actor, Incarnation{4}}, checkpoint});
    ASSERT_TRUE(stage.ended());
    EXPECT_EQ(stage.ended()->outcome, JobOutcome::kFailed);
    EXPECT_EQ(stage.exchange->ledger().counters().live, 0);
  }
}

TEST(Exchange, LearnerThatCannotComeUpEndsTheJobWithItsReason) {
  Stage stage;
  stage.tell(LearnerFailed{kLearner, "cannot resume from checkpoint step-30"});
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, JobOutcome::kFailed);
  EXPECT_NE(stage.ended()->reason.find("step-30"), std::string::npos);
}

TEST(Exchange, NothingBeginsAfterTheEnd) {
  Stage stage;
  stage.tell(LearnerUp{kLearner, {}});
  stage.tell(EndJob{JobOutcome::kCancelled, "cancelled by the user"});
  ASSERT_TRUE(stage.ended());
  const std::size_t sent = stage.to_learner.size();
  stage.tell(Published{kLearner, {.version = kInitialWeights, .oldest_retained = kInitialWeights}});
  stage.tell(WarmStarted{.from = kLearner, .publication = {PolicyVersion{0}, kInitialWeights, 1}});
  stage.tell(RolloutUp{kRollout, 100});
  stage.tell(EndJob{JobOutcome::kFailed, "again"});
  EXPECT_EQ(stage.to_learner.size(), sent);
  EXPECT_TRUE(stage.to_rollout.empty());
  EXPECT_EQ(Stage::only<JobEnded>(stage.to_controller).size(), 1u);
  EXPECT_EQ(parse_json(*stage.record.result_json)["state"], "Cancelled");
}

// Two rollouts evaluate version 0; one dies when the other has moved on to version 1. The prompts
// go to the other all the same, and version 0 is retained for it.
TEST(Exchange, EvaluationGoesBackToItsVersion) {
  SimulatedJob job = plain_job(1);
  job.exchange.budget.max_staleness = job.exchange.budget.lookahead = 0;
  job.validation_prompts = 6;
  Stage stage(job);
  stage.begin();  // the rollout has all six prompts
  const auto first = Stage::only<Evaluate>(stage.to_rollout);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].version, PolicyVersion{0});
  stage.train(1);  // with K = 0 two versions are held: 0 and 1
  EXPECT_EQ(stage.step_sent()->retain, PolicyVersion{0});
  stage.tell(ActorDown{kRollout.actor, kRollout.incarnation, "killed"});
  const Sender other{kRollout.actor, Incarnation{8}};
  stage.to_rollout.clear();
  stage.tell(RolloutUp{other, 100});
  stage.tell(Installed{other, PolicyVersion{1}});
  const auto second = Stage::only<Evaluate>(stage.to_rollout);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].version, PolicyVersion{0});
  EXPECT_EQ(second[0].prompts.size(), 6u);
  for (const GroupWork& work : stage.assigned()) {
    GroupHeader header{
        .group = work.group, .attempt = work.attempt, .payload = stage.shelf.put("")};
    header.trajectories.assign(2, {.oldest = PolicyVersion{1}, .newest = PolicyVersion{1}});
    stage.tell(Generated{other, {header}});
  }
  stage.score_everything();
  EXPECT_EQ(stage.step_sent()->step, StepId{0}) << "EX-E: version 2 has no place yet";
  Evaluated done{.from = other, .evaluation = second[0].evaluation};
  for (std::int32_t i = 0; i < 6; ++i) done.completions.push_back({i, "text", false});
  stage.tell(done);
  EXPECT_EQ(stage.step_sent()->step, StepId{1});
}

}  // namespace
}  // namespace tandem::actors
