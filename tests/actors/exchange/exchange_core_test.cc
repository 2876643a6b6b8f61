// The exchange's core alone, without an actor: inputs and times in, effects out.
#include "actors/exchange/exchange_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/actors/exchange/begun_core.h"

namespace tandem::exchange {
namespace {

template <class Kind>
std::vector<Kind> only(const std::vector<ExchangeEffect>& effects) {
  std::vector<Kind> found;
  for (const ExchangeEffect& effect : effects)
    if (const auto* one = std::get_if<Kind>(&effect)) found.push_back(*one);
  return found;
}

TEST(ExchangeCore, GroupsAreToldPageByPage) {
  BegunCore core;
  core.begin();
  const auto all = core.core_.groups({}, core.now_);
  ASSERT_GT(all.size(), 3u);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t after = 0;;) {
    const auto page = core.core_.groups({.after = after, .limit = 2}, core.now_);
    if (page.empty()) break;
    EXPECT_LE(page.size(), 2u);
    for (const messages::GroupView& group : page) {
      const messages::GroupView& same = all.at(numbers.size());
      EXPECT_EQ(group.group, same.group);
      EXPECT_EQ(group.holder, same.holder);
      numbers.push_back(group.group);
    }
    after = numbers.back();
  }
  EXPECT_EQ(numbers.size(), all.size());
  EXPECT_EQ(all.front().holder, kFirstRollout.name);
}

TEST(ExchangeCore, SameInputsGiveTheSameEffects) {
  BegunCore one, other;
  one.begin();
  other.begin();
  EXPECT_EQ(one.said_, other.said_);
  EXPECT_GT(one.said_.size(), 10u);
}

TEST(ExchangeCore, EX_1_LeasesAreInTheJournalOfTheirDecisionWhichComesLast) {
  BegunCore core;
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
  BegunCore core;
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
  BegunCore core;
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
  BegunCore core;
  core.begin();
  const auto ends = only<EndRun>(core.take(RecordFailed{"cannot write metrics.jsonl"}));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].ended.outcome, messages::JobOutcome::kFailed);
  EXPECT_EQ(ends[0].ended.reason, "cannot write metrics.jsonl");
}

// The second group's payload is stored; nobody will speak of it again.
TEST(ExchangeCore, APayloadThatIsNotInTheStoreIsRefusedAndTheRestOfItsMessageReleased) {
  BegunCore core;
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
