// Tests what `tandem why` and `tandem events` say of broadcasts. exchange_broadcast_test and
// broadcast_group_test check who is in which epoch, and the whole conversation.
#include "actors/exchange/broadcasts.h"

#include <gtest/gtest.h>

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;
using State = messages::EpochOperationState;

const Time kNow{std::int64_t{100} * 1'000'000'000};

messages::EpochOperation bucket(std::uint64_t sequence, State state, std::int64_t since_ms) {
  return {.sequence = sequence,
          .label = "version 7, bucket " + std::to_string(sequence),
          .bytes = 64,
          .state = state,
          .since_ms = since_ms};
}

RankOperations rank(const std::string& actor, std::vector<messages::EpochOperation> operations) {
  return {.actor = "job-1/" + actor, .operations = std::move(operations), .at = kNow + -1s};
}

TEST(BroadcastWaits, TheRankThatDidNotEnterIsNamedWithThoseThatDid) {
  const auto waits = waits_within({rank("learner/0", {bucket(2, State::kStarted, 11'000)}),
                                   rank("rollout/0", {bucket(2, State::kEntered, 10'500)}),
                                   rank("rollout/1", {bucket(1, State::kDone, 0)})},
                                  30s, kNow);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].who, "job-1/learner/0");
  EXPECT_EQ(waits[0].waits_for, "job-1/rollout/1 to enter the broadcast of version 7, bucket 2");
  EXPECT_DOUBLE_EQ(waits[0].since_s, 12);
  EXPECT_DOUBLE_EQ(waits[0].deadline_s.value_or(0), 18);
  EXPECT_EQ(waits[0].detail,
            "rollout/1 has not entered the broadcast of version 7, bucket 2, which learner/0, "
            "rollout/0 entered 12 s ago");
}

TEST(BroadcastWaits, ARankThatQueuedItOrSaidNothingIsToldApart) {
  const auto waits =
      waits_within({rank("learner/0", {bucket(2, State::kStarted, 11'000)}),
                    rank("rollout/0", {bucket(2, State::kQueued, 10'500)}), rank("rollout/1", {})},
                   30s, kNow);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_TRUE(waits[0].detail.starts_with("rollout/0 has not entered the broadcast"));
  EXPECT_TRUE(waits[1].detail.starts_with("rollout/1 has not said that it entered"));
}

TEST(BroadcastWaits, WhereAllEnteredItsEndIsAwaited) {
  // rollout/1 is past it and has dropped it from its list.
  const auto waits = waits_within({rank("learner/0", {bucket(2, State::kDone, 0)}),
                                   rank("rollout/0", {bucket(2, State::kStarted, 2'000)}),
                                   rank("rollout/1", {bucket(12, State::kQueued, 0)})},
                                  30s, kNow);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].who, "job-1/rollout/0");
  EXPECT_EQ(waits[0].waits_for, "the end of the broadcast of version 7, bucket 2");
  EXPECT_EQ(waits[0].detail, "no rank is outside it; rollout/0 entered 3 s ago");
  EXPECT_DOUBLE_EQ(waits[0].deadline_s.value_or(0), 27);
}

TEST(BroadcastWaits, TheOldestOperationCountsAndQuickOnesAreNoWait) {
  EXPECT_TRUE(waits_within({}, 30s, kNow).empty());
  RankOperations quick{"job-1/learner/0", {bucket(2, State::kEntered, 900)}, kNow};
  EXPECT_TRUE(waits_within({quick, rank("rollout/0", {})}, 30s, kNow).empty());
  const auto waits = waits_within({rank("learner/0", {bucket(4, State::kEntered, 5'000)}),
                                   rank("rollout/0", {bucket(3, State::kStarted, 5'000)})},
                                  30s, kNow);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].who, "job-1/rollout/0");
  EXPECT_NE(waits[0].waits_for.find("the end of the broadcast of version 7, bucket 3"),
            std::string::npos)
      << "the learner is past it";
}

TEST(BroadcastWaits, TheStartOfAnEpochIsNoBroadcast) {
  const messages::EpochOperation start{
      .label = "the start of epoch 4", .state = State::kEntered, .since_ms = 4'000};
  const auto waits = waits_within({rank("learner/0", {start}), rank("rollout/0", {})}, 30s, kNow);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].waits_for, "job-1/rollout/0 to enter the start of epoch 4");
}

TEST(BroadcastWaits, AnEpochThatFormsHasADeadlineAndTheRestHoldsNothingUp) {
  const ActorId learner{"j/learner/0", {1}}, rollout{"j/rollout/0", {2}};
  Broadcasts broadcasts("j", {});
  ASSERT_FALSE(broadcasts.take(messages::BroadcastUp{learner, 22809}, kNow));
  ASSERT_FALSE(broadcasts.take(messages::BroadcastUp{rollout, 22809}, kNow));
  (void)broadcasts.decide(kNow);
  const auto waits = broadcasts.waits(kNow + 4s);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].ended_by, "it goes on meanwhile");
  EXPECT_FALSE(waits[0].deadline_s);
  EXPECT_DOUBLE_EQ(waits[1].deadline_s.value_or(0), 26) << waits[1].detail;
}

// An epoch that fails as soon as it has formed, again and again, for an hour.
TEST(BroadcastNews, FailuresInARowAreSaidEverMoreRarely_BC2) {
  const ActorId learner{"j/learner/0", {1}}, rollout{"j/rollout/0", {2}};
  Broadcasts broadcasts("j", {});
  Time now = kNow;
  const auto say = [&](const messages::BroadcastEvents& event) {
    EXPECT_EQ(broadcasts.take(event, now), std::nullopt);
  };
  say(messages::BroadcastUp{learner, 22809});
  say(messages::BroadcastUp{rollout, 22809});
  std::vector<Broadcasts::News> news;
  std::int64_t formed = 0;
  for (int i = 0; i < 7200; ++i, now = now + 500ms) {
    for (const Broadcasts::Message& message : broadcasts.decide(now)) {
      const bool to_learner = message.to.name == learner.name;
      const ActorId& from = to_learner ? learner : rollout;
      if (const auto* open = std::get_if<messages::OpenEpoch>(&message.what)) {
        say(messages::EpochOpened{learner, open->epoch, std::string(128, 'u'), 1});
        say(messages::EpochJoined{learner, open->epoch});
      } else if (const auto* join = std::get_if<messages::JoinEpoch>(&message.what)) {
        say(messages::EpochJoined{rollout, join->epoch});
      } else if (const auto* use = std::get_if<messages::UseEpoch>(&message.what)) {
        say(messages::EpochInUse{learner, use->epoch});
        say(messages::EpochFailed{rollout, use->epoch, "no route to host"});
        ++formed;
      } else if (const auto* leave = std::get_if<messages::LeaveEpoch>(&message.what)) {
        say(messages::EpochLeft{from, leave->epoch});
      }
    }
    for (Broadcasts::News& line : broadcasts.take_news()) news.push_back(std::move(line));
  }
  EXPECT_GE(broadcasts.failures(), 2);
  EXPECT_EQ(broadcasts.failures(), formed);
  EXPECT_LE(news.size(), 30u);
  ASSERT_GE(news.size(), 3u);
  EXPECT_EQ(news[0].level, messages::EventLevel::kInfo);
  EXPECT_EQ(news[0].text, "weights are broadcast to 1 rollout, in epoch 1");
  EXPECT_EQ(news[1].level, messages::EventLevel::kWarning);
  EXPECT_EQ(news[1].text, "broadcast epoch 1 ended: rollout/0: no route to host");
  EXPECT_NE(news[2].text.find("after 1 failures in a row"), std::string::npos) << news[2].text;
}

}  // namespace
}  // namespace tandem::exchange
