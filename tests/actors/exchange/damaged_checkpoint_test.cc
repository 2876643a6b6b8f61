// A learner that dies while its newest checkpoint is damaged, as its exchange handles it: the
// learner stands at the checkpoint before (CP-2), and the batches since that one are kept.
//
// Tests actors/exchange/learner.h, actors/exchange/checkpoints.h.
#include <gtest/gtest.h>

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

// Checkpoints of the steps 2 and 4 are saved, and four steps are trained.
class DamagedCheckpoint : public testing::Test {
 protected:
  explicit DamagedCheckpoint(std::int64_t checkpoints_kept = 2) : stage(job(checkpoints_kept)) {
    stage.begin();
    for (const std::int64_t step : {2, 4}) {
      stage.train(step);
      save(kLearner, step);
    }
    stage.tell(messages::ActorDown{kLearner, "killed"});
  }
  static controller::SimulatedJob job(std::int64_t checkpoints_kept) {
    controller::SimulatedJob job = controller::plain_job(1);
    job.exchange.save.steps = 2;
    job.exchange.checkpoints_kept = checkpoints_kept;
    return job;
  }
  void save(const ActorId& learner, std::int64_t step) {
    stage.tell(
        messages::CheckpointSaved{learner, StepId{step}, "step-" + std::to_string(step), "sha"});
  }
  const RunFacts& facts() const { return stage.exchange->core().state().facts(); }
  bool told() const {
    return std::ranges::any_of(
        Stage::only<messages::ExchangeEvent>(stage.to_controller), [](const auto& event) {
          return event.message.find("the checkpoint of step 4 cannot be read any more") == 0 &&
                 event.level == messages::EventLevel::kWarning;
        });
  }

  Stage stage;
  const ActorId next{kLearner.name, Incarnation{4}};
};

TEST_F(DamagedCheckpoint, TheStepsSinceTheOneBeforeAreTrainedAgain) {
  const std::size_t payloads = stage.payload_store.size();
  stage.tell(stage.learner_up(next, StepId{2}));
  ASSERT_FALSE(stage.ended());
  EXPECT_TRUE(told());
  EXPECT_EQ(stage.step_sent()->step, StepId{2});
  for (const wire::PayloadRef& payload : [&] {
         std::vector<wire::PayloadRef> refs;
         for (const auto& group : stage.step_sent()->groups) refs.push_back(group.payload);
         return refs;
       }())
    EXPECT_TRUE(stage.payload_store.read(payload)) << "it is kept";
  stage.commit(next);
  stage.commit(next);
  EXPECT_EQ(facts().flow.ledger.next_commit(), StepId{4});
  EXPECT_EQ(facts().flow.ledger.counters().retrained, 8);
  EXPECT_EQ(facts().learner.durable, StepId{2}) << "of the damaged one nothing is expected";
  EXPECT_GE(stage.payload_store.size(), payloads);
  // The next checkpoint keeps the batches since step 2, the newest that is known to be whole.
  const auto generated_at = [&](std::int64_t version) {
    const auto works = stage.assigned();
    for (; stage.works_done < works.size(); ++stage.works_done)
      stage.generate(works[stage.works_done], PolicyVersion{version});
    stage.score_everything();
    stage.commit(next);
  };
  generated_at(4);
  generated_at(5);
  save(next, 6);
  EXPECT_EQ(facts().learner.durable, StepId{6});
  EXPECT_EQ(facts().learner.batches_from(), StepId{2});
  stage.tell(messages::ActorDown{next, "killed"});
  stage.tell(stage.learner_up({kLearner.name, Incarnation{5}}, StepId{2}));
  EXPECT_FALSE(stage.ended());
  EXPECT_EQ(stage.step_sent()->step, StepId{2});
}

TEST_F(DamagedCheckpoint, AWholeOneIsGoneOnFromAsEver) {
  stage.tell(stage.learner_up(next, StepId{4}));
  EXPECT_FALSE(told());
  EXPECT_FALSE(facts().flow.ledger.replaying());
}

class OneCheckpointKept : public DamagedCheckpoint {
 protected:
  OneCheckpointKept() : DamagedCheckpoint(1) {}
};

TEST_F(OneCheckpointKept, NoBatchIsKeptForACheckpointThatIsDeleted) {
  EXPECT_EQ(facts().learner.batches_from(), StepId{4});
  stage.tell(stage.learner_up(next, StepId{2}));
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->outcome, messages::JobOutcome::kFailed);
}

}  // namespace
}  // namespace tandem::exchange
