// The exchange's core alone, without an actor: inputs and times in, effects out.
#include "actors/exchange/exchange_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/wire/codec.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::exchange {
namespace {

const ActorId kFirstLearner{"job-1/learner/0", Incarnation{1}};
const ActorId kFirstRollout{"job-1/rollout/0", Incarnation{2}};
const ActorId kFirstReward{"job-1/reward/0", Incarnation{3}};

template <class Kind>
std::vector<Kind> only(const std::vector<ExchangeEffect>& effects) {
  std::vector<Kind> found;
  for (const ExchangeEffect& effect : effects)
    if (const auto* one = std::get_if<Kind>(&effect)) found.push_back(*one);
  return found;
}

// The effect's kind and content as text.
std::string text(const ExchangeEffect& effect) {
  std::string words = std::to_string(effect.index());
  const auto add_message = [&](const auto& inbox) {
    std::visit([&](const auto& message) { words += " " + wire::encode(message); }, inbox);
  };
  if (const auto* to = std::get_if<To<messages::RolloutPeer>>(&effect)) add_message(to->message);
  if (const auto* to = std::get_if<To<messages::RewardPeer>>(&effect)) add_message(to->message);
  if (const auto* to = std::get_if<To<messages::LearnerPeer>>(&effect)) add_message(to->message);
  if (const auto* journal = std::get_if<Journal>(&effect))
    for (const JournalEvent& event : journal->events) words += " " + wire::encode(event);
  return words;
}

class Core {
 public:
  Core() : core_(controller::exchange_config(controller::plain_job(2), "job-1", false)) {}

  // Gives the core the input and then one decision, as the actor does.
  std::vector<ExchangeEffect> take(ExchangeInput input) {
    now_ = now_ + std::chrono::milliseconds(1);
    std::vector<ExchangeEffect> all = core_.step(std::move(input), now_);
    for (ExchangeInput next : {ExchangeInput(Decide{}), ExchangeInput(MessagesSent{})})
      for (ExchangeEffect& effect : core_.step(std::move(next), now_))
        all.push_back(std::move(effect));
    return all;
  }

  // Brings the run up to the first leases, which are the effects of the last input.
  std::vector<ExchangeEffect> begin() {
    const ExchangeInput inputs[] = {
        messages::LearnerUp{kFirstLearner, {}},
        messages::Published{kFirstLearner,
                            {.version = kInitialWeights, .oldest_retained = kInitialWeights}},
        messages::WarmStarted{.from = kFirstLearner,
                              .publication = {PolicyVersion{0}, kInitialWeights, 100}},
        messages::RolloutUp{kFirstRollout, 100},
        messages::RewardUp{kFirstReward, 100},
        messages::Installed{.from = kFirstRollout, .version = PolicyVersion{0}, .checksum = 100}};
    std::vector<ExchangeEffect> last;
    for (const ExchangeInput& input : inputs) {
      last = take(input);
      for (const ExchangeEffect& effect : last) said_.push_back(text(effect));
    }
    return last;
  }

  std::vector<std::string> said_;
  ExchangeCore core_;
  Time now_;
};

TEST(ExchangeCore, SameInputsGiveTheSameEffects) {
  Core one, other;
  one.begin();
  other.begin();
  EXPECT_EQ(one.said_, other.said_);
  EXPECT_GT(one.said_.size(), 10u);
}

TEST(ExchangeCore, EX_1_LeasesAreInTheJournalOfTheirDecisionWhichComesLast) {
  Core core;
  const std::vector<ExchangeEffect> effects = core.begin();
  std::vector<std::int64_t> sent, journalled;
  for (const auto& message : only<To<messages::RolloutPeer>>(effects))
    if (const auto* assign = std::get_if<messages::Assign>(&message.message))
      for (const messages::GroupWork& work : assign->groups) sent.push_back(work.attempt);
  const auto journals = only<Journal>(effects);
  ASSERT_EQ(journals.size(), 1u);
  for (const JournalEvent& event : journals[0].events)
    if (const auto* leased = std::get_if<RolloutLeased>(&event))
      journalled.push_back(static_cast<std::int64_t>(leased->lease.value));
  EXPECT_EQ(sent.size(), 12u);  // (p + L + 1) B
  EXPECT_EQ(sent, journalled) << "EX-1";
  // The actor sends when it has carried the journal out: no message comes behind it.
  const auto journal = std::find_if(effects.begin(), effects.end(), [](const auto& effect) {
    return std::holds_alternative<Journal>(effect);
  });
  EXPECT_TRUE(std::none_of(journal, effects.end(), [](const auto& effect) {
    return std::holds_alternative<To<messages::RolloutPeer>>(effect) ||
           std::holds_alternative<To<messages::RewardPeer>>(effect) ||
           std::holds_alternative<To<messages::LearnerPeer>>(effect);
  })) << "EX-1";
}

TEST(ExchangeCore, AWaitForAnActorBeginsWithTheEndOfTheLastOne) {
  Core core;
  core.begin();
  core.now_ = core.now_ + std::chrono::hours(1);
  for (const ActorId& actor : {kFirstRollout, kFirstReward, kFirstLearner})
    core.take(messages::ActorDown{actor, "killed"});
  int found = 0;
  for (const messages::Wait& wait :
       core.core_.report(core.now_ + std::chrono::seconds(2)).status.waits) {
    if (wait.waits_for != "a rollout actor" && wait.waits_for != "a reward actor" &&
        wait.waits_for != "the learner to start")
      continue;
    ++found;
    EXPECT_NEAR(wait.since_s, 2, 0.01) << wait.waits_for;
  }
  EXPECT_EQ(found, 3);
}

TEST(ExchangeCore, AJournalThatCannotBeWrittenEndsTheJobOnce) {
  Core core;
  core.begin();
  const auto effects = core.take(JournalFailed{"no space left on device"});
  const auto ends = only<EndRun>(effects);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].ended.outcome, messages::JobOutcome::kFailed);
  EXPECT_EQ(ends[0].ended.reason, "no space left on device");
  EXPECT_TRUE(ends[0].result.has_value());
  EXPECT_TRUE(core.core_.ended());
  EXPECT_TRUE(only<EndRun>(core.take(JournalFailed{"again"})).empty());
}

TEST(ExchangeCore, AFileOfTheRunThatCannotBeWrittenFailsTheJobWithItsReason) {
  Core core;
  core.begin();
  const auto ends = only<EndRun>(core.take(RecordFailed{"cannot write metrics.jsonl"}));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].ended.outcome, messages::JobOutcome::kFailed);
  EXPECT_EQ(ends[0].ended.reason, "cannot write metrics.jsonl");
}

// The second group's payload is stored; nobody will speak of it again.
TEST(ExchangeCore, APayloadThatIsNotInTheStoreIsRefusedAndTheRestOfItsMessageReleased) {
  Core core;
  const auto assigned = only<To<messages::RolloutPeer>>(core.begin());
  ASSERT_EQ(assigned.size(), 1u);
  const auto& works = std::get<messages::Assign>(assigned[0].message).groups;
  messages::Generated generated{kFirstRollout, {}};
  for (std::uint64_t i = 0; i < 2; ++i) {
    messages::GroupHeader header{
        .group = works[i].group, .attempt = works[i].attempt, .payload = {}};
    header.payload.offset = i;
    header.trajectories.assign(static_cast<std::size_t>(works[i].n), {.completion_tokens = 3});
    generated.groups.push_back(header);
  }
  const auto stored = generated.groups[1].payload;
  const auto effects = core.take(GroupsGenerated{.message = generated, .payloads = {stored}});
  const auto refusals = only<Refuse>(effects);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].who.name, kFirstRollout.name);
  EXPECT_EQ(refusals[0].why, "Generated: a payload that is not its own");
  const auto released = only<ReleaseWritten>(effects);
  ASSERT_EQ(released.size(), 1u);
  EXPECT_TRUE(released[0].payloads.contains(stored));
}

}  // namespace
}  // namespace tandem::exchange
