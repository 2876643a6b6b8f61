// A learner that repeats its steps and does not reproduce its weights, as its exchange handles it.
//
// Tests actors/exchange/training.h.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

// Three steps are trained, and a second learner repeats them from version 0.
class NotReproduced : public testing::Test {
 protected:
  explicit NotReproduced(controller::SimulatedJob job = controller::plain_job(1)) : stage(job) {
    stage.begin();
    stage.train(3);
    stage.tell(messages::ActorDown{kLearner, "killed"});
    stage.tell(stage.learner_up(second, StepId{0}));
  }
  const RunFacts& facts() const { return stage.exchange->core().state().facts(); }
  void commit(const ActorId& learner, std::uint64_t checksum) {
    const TrainStep step = *stage.step_sent();
    messages::StepCommitted committed{.from = learner, .step = step.step, .checksum = checksum};
    if (step.publish) {
      committed.publication = stage.publication({step.step.value + 1}, step.retain);
      committed.publication->checksum = checksum;
    }
    stage.tell(committed);
  }
  std::vector<messages::ExchangeEvent> told() const {
    std::vector<messages::ExchangeEvent> events;
    for (const auto& event : Stage::only<messages::ExchangeEvent>(stage.to_controller))
      if (event.message.find("other weights than before") != std::string::npos)
        events.push_back(event);
    return events;
  }

  Stage stage;
  const ActorId second{kLearner.name, Incarnation{4}};
};

TEST_F(NotReproduced, ANewLineageGoesOnFromTheWeightsOfNow) {
  const std::int64_t live = facts().flow.ledger.counters().live;
  commit(second, Stage::checksum_of({1}));
  EXPECT_TRUE(told().empty());
  commit(second, 7002);  // step 1
  ASSERT_FALSE(stage.ended());
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told()[0].level, messages::EventLevel::kWarning);
  EXPECT_EQ(told()[0].message.find("training step 1 again gave other weights"), 0u);
  commit(second, 7003);  // step 2, which gives other weights as well
  EXPECT_EQ(told().size(), 1u) << "one lineage, told once";
  EXPECT_EQ(facts().flow.ledger.counters().live, live) << "groups stay";
  EXPECT_EQ(facts().learner.checksums.at(StepId{3}), 7003u);
  bool why = false;
  for (const messages::Wait& wait : stage.exchange->core().report({}).status.waits)
    why = why || wait.detail.find("new lineage 1") != std::string::npos;
  EXPECT_TRUE(why);
  // The next death repeats the steps of the new lineage.
  stage.tell(messages::ActorDown{second, "killed"});
  const ActorId third{kLearner.name, Incarnation{5}};
  stage.tell(stage.learner_up(third, StepId{0}));
  for (const std::uint64_t checksum :
       {Stage::checksum_of({1}), std::uint64_t{7002}, std::uint64_t{7003}})
    commit(third, checksum);
  EXPECT_EQ(told().size(), 1u);
  EXPECT_EQ(facts().flow.ledger.next_commit(), StepId{3});
  EXPECT_TRUE(stage.refused.empty()) << "rollouts that have the version of before may keep it";
  stage.tell(messages::EndJob{messages::JobOutcome::kCancelled, "enough"});
  ASSERT_TRUE(stage.record.result_json);
  EXPECT_EQ(parse_json(*stage.record.result_json)["lineages"], nlohmann::json({1}));
}

TEST_F(NotReproduced, TheExchangeThatFollowsKnowsTheLineage) {
  commit(second, 7001);
  stage.follow();
  bool why = false;
  for (const messages::Wait& wait : stage.exchange->core().report({}).status.waits)
    why = why || wait.detail.find("training step 0 again gave other weights") == 0;
  EXPECT_TRUE(why);
}

class NotReproducedAtAFixedLag : public NotReproduced {
 protected:
  NotReproducedAtAFixedLag() : NotReproduced(controller::fixed_lag_job(1, 2)) {}
};

TEST_F(NotReproducedAtAFixedLag, IsAnErrorThatSaysThatTheRunCannotBeRepeated) {
  commit(second, 7001);
  ASSERT_FALSE(stage.ended());
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told()[0].level, messages::EventLevel::kError);
  EXPECT_NE(told()[0].message.find("CAN NO LONGER BE REPEATED"), std::string::npos);
}

}  // namespace
}  // namespace tandem::exchange
