// A prompt that crashes the rollouts that generate it, as its exchange handles it.
#include "actors/exchange/quarantine.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

constexpr const char* kCause = "killed by SIGSEGV (11)";

// One rollout, whose engine dies whenever it begins with the deadly group, or says so before.
class DeadlyPrompt : public testing::Test {
 protected:
  explicit DeadlyPrompt(controller::SimulatedJob job = controller::plain_job(1)) : stage(job) {
    stage.begin();
  }
  const RunFacts& facts() const { return stage.exchange->core().state().facts(); }
  ActorId rollout() const { return {kRollout.name, Incarnation{incarnation}}; }
  void end(bool crashed) { stage.tell(messages::ActorDown{rollout(), kCause, crashed}); }
  void come_up() {
    incarnation += 100;
    stage.to_rollout.clear();
    stage.tell(messages::RolloutUp{rollout(), kCapacity});
    stage.install(rollout(), facts().versions.published);
  }
  void crash() {
    end(true);
    come_up();
  }
  std::vector<GroupId> held() const {
    std::vector<GroupId> groups;
    for (const scheduler::Lease& lease : facts().flow.ledger.leases_of(Incarnation{incarnation}))
      groups.push_back(lease.group);
    return groups;
  }
  // Generates all that is assigned, but the deadly group; true where that one is there.
  bool generate_others(GroupId deadly) {
    bool met = false;
    for (const GroupWork& work : stage.assigned()) {
      const auto lease = facts().flow.ledger.find(work.group);
      if (!lease || !lease->lease || lease->lease->id.value != work.attempt) continue;
      if (work.group == deadly) {
        met = true;
        continue;
      }
      messages::GroupHeader header{
          .group = work.group, .attempt = work.attempt, .payload = stage.payload_store.put("x")};
      const PolicyVersion version = facts().versions.published;
      header.trajectories.assign(2, {.oldest = version, .newest = version, .completion_tokens = 3});
      stage.tell(messages::Generated{rollout(), {header}});
    }
    return met;
  }
  std::int64_t discarded() const {
    return facts().flow.ledger.counters().discarded[static_cast<std::size_t>(
        scheduler::DiscardReason::kPoisonPrompt)];
  }
  std::vector<std::string> rows(const std::string& kind) const {
    std::vector<std::string> details;
    for (const controller::JournalledRow& row : stage.record.events)
      if (row.kind == kind) details.push_back(row.detail);
    return details;
  }
  bool said(const std::string& text) const {
    return std::ranges::any_of(Stage::only<messages::ExchangeEvent>(stage.to_controller),
                               [&](const auto& event) {
                                 return event.message.find(text) != std::string::npos &&
                                        event.level == messages::EventLevel::kWarning;
                               });
  }

  Stage stage;
  std::uint64_t incarnation = 1;
};

TEST_F(DeadlyPrompt, IsFoundAmongTheOthersAndDiscardedAndTheStepIsTrainedInFull_PQ1_PQ2) {
  const GroupId deadly{2};
  ASSERT_GT(held().size(), 4u);
  crash();
  ASSERT_GT(held().size(), 4u) << "once is an accident: nothing is tried alone";
  crash();
  ASSERT_EQ(held().size(), 1u);
  int tried = 0, met = 0;
  while (discarded() == 0 && ++tried < 40) {
    ASSERT_EQ(held().size(), 1u) << "a suspect is alone";
    if (!generate_others(deadly)) continue;
    ++met;
    crash();
  }
  EXPECT_EQ(discarded(), 1);
  EXPECT_LE(met, 2) << "a second time where nothing else had been generated before";
  EXPECT_EQ(facts().flow.ledger.find(deadly), nullptr);
  EXPECT_TRUE(said("group 2 is quarantined as poison_prompt: ")) << "with its prompt";
  EXPECT_TRUE(said(kCause));
  const auto reasons = rows("discarded");
  EXPECT_EQ(reasons, std::vector<std::string>{"poison_prompt"});
  EXPECT_FALSE(rows("suspected").empty());
  bool sampled = false;
  for (const std::string& line : stage.record.sample_lines)
    sampled = sampled || line.find("\"error\":\"poison_prompt: ") != std::string::npos;
  EXPECT_TRUE(sampled);
  // The others, and the one in its place, make the whole batch.
  for (int round = 0; round < 40 && !stage.step_sent(); ++round) {
    EXPECT_FALSE(generate_others(deadly));
    stage.score_everything();
  }
  ASSERT_TRUE(stage.step_sent());
  EXPECT_EQ(std::ssize(stage.step_sent()->groups), facts().began.budget.groups_per_step);
  bool told = false;
  for (const messages::Wait& wait : stage.exchange->core().report({}).status.waits)
    told = told || wait.detail.find("the newest one is group 2, poison_prompt") == 0;
  EXPECT_TRUE(told);
}

TEST_F(DeadlyPrompt, KillsFromOutsideConvictNobodyHoweverMany_PQ2) {
  for (int kill = 0; kill < 10; ++kill) {
    end(false);
    come_up();
    EXPECT_GT(held().size(), 4u) << "nothing is tried alone";
  }
  EXPECT_TRUE(facts().flow.suspects.all().empty());
  EXPECT_TRUE(rows("engine_crashed").empty());
  EXPECT_EQ(discarded(), 0);
}

TEST_F(DeadlyPrompt, AnEngineThatSaysThatItBrokeIsACrash) {
  stage.tell(messages::EngineBroke{rollout(), "the logits are no numbers"});
  EXPECT_TRUE(facts().flow.suspects.all().empty()) << "its end is still to come";
  end(false);
  EXPECT_FALSE(facts().flow.suspects.all().empty());
}

TEST_F(DeadlyPrompt, SuspicionOutlivesTheExchange) {
  crash();
  crash();
  const auto before = facts().flow.suspects.all();
  EXPECT_FALSE(before.empty());
  stage.follow();
  EXPECT_EQ(facts().flow.suspects.all(), before) << "DU-2";
}

// Rollouts that hold one group at a time: the one that is alone in two crashes is guilty, and the
// same prompt is not tried again in the next epoch.
class SmallEngine : public DeadlyPrompt {
 protected:
  SmallEngine() : DeadlyPrompt(job()) {}
  static controller::SimulatedJob job() {
    controller::SimulatedJob job = controller::plain_job(1);
    job.prompts = 6;
    return job;
  }
};

TEST_F(SmallEngine, APromptIsQuarantinedForAllEpochs) {
  const GroupId deadly{2};
  crash();
  crash();
  for (int tried = 0; tried < 40 && discarded() == 0; ++tried)
    if (generate_others(deadly)) crash();
  const std::int64_t first = discarded();
  ASSERT_GE(first, 1) << "with other groups of the prompt, which nobody held";
  // Sixteen groups take the five other prompts three times.
  std::set<std::string> prompts;
  for (int round = 0; round < 60 && facts().flow.ledger.next_commit().value < 4; ++round) {
    for (const GroupWork& work : stage.assigned()) prompts.insert(work.prompt);
    EXPECT_FALSE(generate_others(deadly));
    stage.score_everything();
    if (!stage.step_sent() || !facts().learner.owed) continue;
    const StepId step = stage.step_sent()->step;
    messages::StepCommitted committed{
        .from = kLearner, .step = step, .checksum = Stage::checksum_of({step.value + 1})};
    if (stage.step_sent()->publish)
      committed.publication = stage.publication({step.value + 1}, stage.step_sent()->retain);
    stage.tell(committed);
    stage.install(rollout(), {step.value + 1});
  }
  EXPECT_EQ(facts().flow.ledger.next_commit().value, 4);
  EXPECT_GT(discarded(), first) << "it came again, and was discarded before anybody generated it";
  EXPECT_EQ(rows("engine_crashed").size(), 3u);
}

}  // namespace
}  // namespace tandem::exchange
