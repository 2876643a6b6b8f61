// The exchange's core alone, without an actor: inputs and times in, effects out.
#include "actors/exchange/exchange_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/actors/controller/scenario.h"

namespace tandem::actors {
namespace {

const Sender kLearner{"job-1/learner/0", Incarnation{1}};
const Sender kRollout{"job-1/rollout/0", Incarnation{2}};
const Sender kReward{"job-1/reward/0", Incarnation{3}};

template <class Kind>
std::vector<Kind> only(const std::vector<ExchangeEffect>& effects) {
  std::vector<Kind> found;
  for (const ExchangeEffect& effect : effects)
    if (const auto* one = std::get_if<Kind>(&effect)) found.push_back(*one);
  return found;
}

// Which effect, and of a journal what it says.
std::string text(const ExchangeEffect& effect) {
  std::string words = std::to_string(effect.index());
  if (const auto* journal = std::get_if<Journal>(&effect))
    for (const JournalEvent& event : journal->events)
      words += " " + event.kind + "/" + std::to_string(event.group) + "/" +
               std::to_string(event.lease) + "/" + std::to_string(event.step) + "/" + event.detail;
  return words;
}

class Core {
 public:
  Core() : core_(exchange_config(plain_job(2), "job-1", false)) {}

  // As the actor does: the input, then one decision.
  std::vector<ExchangeEffect> take(ExchangeInput input) {
    now_ = now_ + std::chrono::milliseconds(1);
    std::vector<ExchangeEffect> all = core_.step(std::move(input), now_);
    for (ExchangeInput next : {ExchangeInput(Decide{}), ExchangeInput(MessagesSent{})})
      for (ExchangeEffect& effect : core_.step(std::move(next), now_))
        all.push_back(std::move(effect));
    return all;
  }

  // Everything up to the first leases, in the actor's order.
  std::vector<ExchangeEffect> begin() {
    std::vector<ExchangeEffect> all;
    const ExchangeInput inputs[] = {
        LearnerUp{kLearner, {}},
        Published{kLearner, {.version = kInitialWeights, .oldest_retained = kInitialWeights}},
        WarmStarted{.from = kLearner, .publication = {PolicyVersion{0}, kInitialWeights, 100}},
        RolloutUp{kRollout, 100},
        RewardUp{kReward, 100},
        Installed{.from = kRollout, .version = PolicyVersion{0}, .checksum = 100}};
    for (const ExchangeInput& input : inputs)
      for (ExchangeEffect& effect : take(input)) all.push_back(std::move(effect));
    return all;
  }

  ExchangeCore core_;
  Time now_;
};

TEST(ExchangeCore, SameInputsGiveTheSameEffects) {
  std::vector<std::string> twice[2];
  for (std::vector<std::string>& words : twice)
    for (const ExchangeEffect& effect : Core().begin()) words.push_back(text(effect));
  EXPECT_EQ(twice[0], twice[1]);
  EXPECT_GT(twice[0].size(), 10u);
}

TEST(ExchangeCore, EX_J_EveryLeaseThatIsSentIsInTheJournalOfItsDecision) {
  const std::vector<ExchangeEffect> effects = Core().begin();
  std::vector<std::int64_t> sent, journalled;
  for (const ToRollout& message : only<ToRollout>(effects))
    if (const auto* assign = std::get_if<Assign>(&message.message))
      for (const GroupWork& work : assign->groups) sent.push_back(work.attempt);
  for (const Journal& journal : only<Journal>(effects))
    for (const JournalEvent& event : journal.events)
      if (event.kind == "rolling") journalled.push_back(event.lease);
  EXPECT_FALSE(sent.empty());
  EXPECT_EQ(sent, journalled) << "EX-J";
  // A decision's journal comes behind all of its messages: the actor sends when it is written.
  Core core;
  core.begin();
  const auto decided = core.take(ActorDown{kRollout.actor, kRollout.incarnation, "killed"});
  const auto last = std::find_if(decided.rbegin(), decided.rend(), [](const auto& effect) {
    return std::holds_alternative<Journal>(effect);
  });
  ASSERT_NE(last, decided.rend());
  EXPECT_TRUE(std::none_of(decided.rbegin(), last, [](const auto& effect) {
    return std::holds_alternative<ToRollout>(effect) || std::holds_alternative<ToReward>(effect) ||
           std::holds_alternative<ToLearner>(effect);
  }));
}

TEST(ExchangeCore, AJournalThatCannotBeWrittenEndsTheJobOnce) {
  Core core;
  core.begin();
  const auto effects = core.take(JournalFailed{"no space left on device"});
  const auto ends = only<EndRun>(effects);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].ended.outcome, JobOutcome::kFailed);
  EXPECT_EQ(ends[0].ended.reason, "no space left on device");
  EXPECT_TRUE(ends[0].result.has_value());
  EXPECT_TRUE(only<Journal>(effects).empty()) << "of what cannot be journalled nothing is tried";
  EXPECT_TRUE(core.core_.ended());
  EXPECT_TRUE(only<EndRun>(core.take(JournalFailed{"again"})).empty());
}

TEST(ExchangeCore, AFileOfTheRunThatCannotBeWrittenFailsTheJobWithItsReason) {
  Core core;
  core.begin();
  const auto ends = only<EndRun>(core.take(RecordFailed{"cannot write metrics.jsonl"}));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].ended.reason, "cannot write metrics.jsonl");
}

TEST(ExchangeCore, APayloadThatIsNotInTheStoreIsRefusedAndTheRestOfItsMessageReleased) {
  Core core;
  const auto begun = core.begin();
  GroupHeader header{.group = GroupId{1}, .attempt = 1, .payload = {}};
  const auto effects = core.take(GroupsGenerated{.message = {kRollout, {header}}, .payloads = {}});
  const auto refusals = only<Refuse>(effects);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].who.name, kRollout.actor);
  EXPECT_EQ(only<ReleaseWritten>(effects).size(), 1u);
}

}  // namespace
}  // namespace tandem::actors
