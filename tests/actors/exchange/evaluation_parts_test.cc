#include "actors/exchange/evaluation_parts.h"

#include <gtest/gtest.h>

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;

// It begins with an evaluation of six prompts.
controller::SimulatedJob evaluated_job() {
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 6;
  job.exchange.rollout_lease = 30s;
  return job;
}

// Without a limit such an evaluation would hold up the end of the run for ever.
TEST(EvaluationParts, ARolloutThatHasLostPromptsOfAnEvaluationIsEndedAndAnotherAsked) {
  Stage stage(evaluated_job());
  stage.begin();
  ASSERT_EQ(Stage::only<messages::Evaluate>(stage.to_rollout).size(), 1u);
  stage.run(29s);
  stage.tell(messages::RolloutStats{.from = kRollout, .generation_tokens = 5});  // progress
  stage.run(29s);
  EXPECT_TRUE(stage.refused.empty());
  stage.run(5s);
  ASSERT_EQ(stage.refused.size(), 1u);
  EXPECT_NE(stage.refused[0].find("has prompts of an evaluation"), std::string::npos)
      << stage.refused[0];
  stage.to_rollout.clear();
  const ActorId next{kRollout.name, Incarnation{8}};
  stage.tell(messages::RolloutUp{next, kCapacity});
  const auto asked = Stage::only<messages::Evaluate>(stage.to_rollout);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].prompts.size(), 6u);
}

TEST(EvaluationParts, ARolloutThatCannotBeginAnEvaluationYetIsWaitedFor) {
  Stage stage(evaluated_job());
  stage.begin();
  for (int i = 0; i < 8; ++i) {
    stage.tell(messages::RolloutStats{.from = kRollout, .missing = PolicyVersion{0}});
    stage.run(10s);
  }
  EXPECT_TRUE(stage.refused.empty()) << "the version has a wait of its own";
}

}  // namespace
}  // namespace tandem::exchange
