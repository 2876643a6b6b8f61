// Published versions that are gone with a learner or its host, as its exchange handles them.
//
// Tests actors/exchange/publications.h.
#include <gtest/gtest.h>

#include <set>

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

// The host of the learner went down, and its shared memory with it.
TEST(LostVersions, VersionsThatWentWithALearnerArePublishedAgain_VS1) {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.save.steps = 2;
  Stage stage(job);
  stage.begin();
  stage.train(2);
  stage.tell(messages::ActorDown{kLearner, "killed"});
  stage.offered.clear();
  const ActorId next{kLearner.name, Incarnation{4}};
  stage.tell(stage.learner_up(next, StepId{0}));
  EXPECT_FALSE(stage.step_sent()->publish) << "no rollout needs version 1 any more";
  stage.commit(next);
  EXPECT_TRUE(stage.step_sent()->publish) << "version 2 is the newest, and is gone";
  stage.commit(next);
  EXPECT_EQ(stage.exchange->core().state().facts().versions.offered, std::set{PolicyVersion{2}});
  stage.tell(messages::CheckpointSaved{next, StepId{2}, "step-2", "sha"});
  // A learner that holds the version publishes it without training.
  stage.tell(messages::ActorDown{next, "killed"});
  stage.offered.clear();
  stage.to_learner.clear();
  const ActorId third{kLearner.name, Incarnation{5}};
  stage.tell(stage.learner_up(third, StepId{2}));
  ASSERT_EQ(Stage::only<messages::PublishInitial>(stage.to_learner).size(), 1u);
  stage.tell(messages::Published{third, stage.publication({2}, {2})});
  EXPECT_EQ(stage.exchange->core().state().facts().versions.offered, std::set{PolicyVersion{2}});
  EXPECT_TRUE(stage.refused.empty());
  EXPECT_FALSE(stage.ended());
}

TEST(LostVersions, ADamagedOneIsPublishedAgainByTheLearnerThatHoldsIt_VS1) {
  Stage stage;
  stage.begin();
  const auto asked = [&] { return Stage::only<messages::PublishInitial>(stage.to_learner).size(); };
  const std::size_t before = asked();
  const messages::VersionDamaged damaged{kRollout, PolicyVersion{0}, "version 0 is damaged"};
  for (std::size_t times = 1; times <= 2; ++times) {
    stage.tell(damaged);
    stage.tell(damaged);  // it says so again, and the learner is at it already
    EXPECT_EQ(asked(), before + times);
    EXPECT_FALSE(stage.exchange->core().state().facts().versions.offered.contains({0}));
    stage.tell(messages::Published{kLearner, stage.publication({0}, kInitialWeights)});
    EXPECT_TRUE(stage.exchange->core().state().facts().versions.offered.contains({0}));
  }
  EXPECT_TRUE(stage.refused.empty());
  // The learner has written it twice by now, so it may be the rollout's own memory.
  stage.tell(damaged);
  ASSERT_EQ(stage.refused.size(), 1u);
  EXPECT_NE(stage.refused.front().find("for the third time"), std::string::npos);
  EXPECT_EQ(asked(), before + 2);
  EXPECT_FALSE(stage.ended());
}

TEST(LostVersions, ADamagedOneThatNobodyHoldsIsNotWaitedFor) {
  Stage stage;
  stage.begin();
  stage.train(2);
  const auto& facts = stage.exchange->core().state().facts();
  const std::size_t asked = stage.to_learner.size();
  stage.tell(messages::VersionDamaged{kRollout, PolicyVersion{1}, "version 1 is damaged"});
  EXPECT_FALSE(facts.versions.offered.contains({1}));
  EXPECT_EQ(facts.versions.oldest_retained, PolicyVersion{2});
  EXPECT_EQ(stage.to_learner.size(), asked);
  EXPECT_FALSE(stage.ended());
}

TEST(LostVersions, ALearnerThatDoesNotPublishWhatItHoldsEndsTheJob) {
  Stage stage;
  stage.begin();
  stage.tell(messages::ActorDown{kLearner, "killed"});
  const ActorId next{kLearner.name, Incarnation{4}};
  stage.tell(messages::LearnerUp{next, StepId{0}});
  stage.tell(messages::Published{next, {.version = {0}, .oldest_retained = {0}}});
  ASSERT_TRUE(stage.ended());
  EXPECT_NE(stage.ended()->reason.find("publish version 0 again"), std::string::npos);
}

TEST(LostVersions, ARolloutWhoseVersionIsGoneSaysForWhomItWaits) {
  Stage stage;
  stage.begin();
  stage.train(1);
  stage.tell(messages::ActorDown{kLearner, "killed"});
  stage.tell(
      messages::RolloutStats{.from = kRollout, .missing = PolicyVersion{1}, .missing_seconds = 7});
  const auto wait = [&]() -> messages::Wait {
    for (const messages::Wait& one : stage.exchange->core().report({}).status.waits)
      if (one.who == kRollout.name) return one;
    return {};
  };
  EXPECT_EQ(wait().waits_for, "the learner to publish version 1");
  stage.tell(messages::LearnerUp{{kLearner.name, Incarnation{4}}, StepId{0}});
  EXPECT_EQ(wait().waits_for, std::string(kLearner.name) + " to publish version 1");
  EXPECT_NE(wait().detail.find("repeats step 0, and the version comes after step 0"),
            std::string::npos)
      << wait().detail;
  EXPECT_EQ(wait().since_s, 7);
}

}  // namespace
}  // namespace tandem::exchange
