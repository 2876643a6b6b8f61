// A learner that is asked to leave: what it still does, and when it is let go.
#include "actors/exchange/drain.h"

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

class Leaving : public testing::Test {
 protected:
  void drain() { stage.tell(messages::DrainActor{kLearner, 600'000}); }
  // Puts a step into the learner's hands.
  void begin_step() {
    const std::int64_t before = done();
    for (const GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{before});
    stage.score_everything();
    ASSERT_NE(stage.step_sent(), nullptr);
    ASSERT_EQ(stage.step_sent()->step.value, before);
  }
  void save(std::int64_t step) {
    stage.tell(messages::CheckpointSaved{kLearner, StepId{step}, "step", "sha"});
  }
  std::int64_t done() const { return stage.exchange->core().ledger().next_commit().value; }
  bool let_go() const {
    for (const auto& drained : Stage::only<messages::ActorDrained>(stage.to_controller))
      if (drained.who == kLearner) return true;
    return false;
  }
  std::vector<messages::SaveCheckpoint> saves() const {
    return Stage::only<messages::SaveCheckpoint>(stage.to_learner);
  }
  std::size_t steps() const { return Stage::only<TrainStep>(stage.to_learner).size(); }

  Stage stage;
};

TEST_F(Leaving, ItEndsItsStepSavesItAndGoes) {
  stage.begin();
  begin_step();
  drain();
  EXPECT_FALSE(let_go()) << "a step is under way";
  const std::size_t asked = saves().size(), given = steps();
  stage.commit();
  EXPECT_EQ(steps(), given) << "no new step";
  ASSERT_EQ(saves().size(), asked + 1);
  EXPECT_EQ(saves().back().step.value, 1);
  EXPECT_FALSE(let_go()) << "the checkpoint is not there yet";
  save(1);
  EXPECT_TRUE(let_go());
  stage.tell(messages::ActorDown{kLearner, "moved"});
  const ActorId next{kLearner.name, Incarnation{9}};
  stage.tell(stage.learner_up(next, StepId{1}));
  EXPECT_EQ(Stage::only<messages::ActorDrained>(stage.to_controller).size(), 1u);
  for (const GroupWork& work : stage.assigned())
    if (work.group.value >= 2) stage.generate(work, PolicyVersion{1});
  stage.score_everything();
  ASSERT_GT(steps(), given) << "the next learner gets the next step";
  EXPECT_EQ(stage.step_sent()->step.value, 1) << "no step is trained twice";
}

TEST_F(Leaving, OneThatHasSavedItsNewestStepGoesAtOnce) {
  stage.begin();
  drain();
  EXPECT_TRUE(let_go());
}

TEST_F(Leaving, OneThatHasNotBegunHasNothingToSave) {
  stage.tell(messages::LearnerUp{kLearner, {}});
  drain();
  EXPECT_TRUE(let_go());
}

TEST_F(Leaving, AfterTheDeadlineItGoesAllTheSame) {
  stage.begin();
  begin_step();
  drain();
  stage.run(std::chrono::minutes(9));
  EXPECT_FALSE(let_go());
  stage.run(std::chrono::minutes(2));
  EXPECT_TRUE(let_go());
}

}  // namespace
}  // namespace tandem::exchange
