// A rollout actor's groups, evaluations and reports. rollout_versions_test.cc has its versions.
#include "actors/rollout/rollout_actor.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <limits>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/wire/codec.h"
#include "tests/actors/messages/latency_counts.h"
#include "tests/actors/rollout/rollout_stage.h"

namespace tandem::rollout {
namespace {

TEST(RolloutActor, TurnsGroupsIntoPayloadsAndHeaders) {
  Fixture f;
  f.assign(1, 20);
  EXPECT_FALSE(f.executor.run_until([&] { return !f.generated().empty(); }, 1s))
      << "nothing is published";
  ASSERT_EQ(f.heard->all<messages::RolloutUp>().size(), 1u);
  EXPECT_EQ(f.heard->all<messages::RolloutUp>()[0].capacity, 24);
  f.publish(kV0, kV0);
  ASSERT_TRUE(f.run_until_generated(20));
  for (const auto& [id, header] : f.generated()) {
    const auto payload =
        wire::decode<messages::GroupPayload>(f.store.payloads[header.payload.offset]);
    ASSERT_TRUE(payload);
    EXPECT_EQ(payload->group, id);
    EXPECT_EQ(header.attempt, 1u);
    ASSERT_EQ(header.trajectories.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(header.trajectories[i].completion_tokens,
                std::ssize(payload->trajectories[i].tokens));
      EXPECT_EQ(header.trajectories[i].oldest, kV0);
    }
  }
  EXPECT_EQ(f.heard->all<messages::Generated>()[0].from.incarnation, Incarnation{3});
  EXPECT_LE(f.store.writes_open_max, kWritesInFlight) << "RO-4";
  EXPECT_FALSE(f.phases.empty());
  EXPECT_FALSE(f.failure);
}

TEST(RolloutActor, InstallsBetweenStepsAndSaysSo) {  // RO-1
  Fixture f;
  f.publish(kV0, kV0);
  f.assign(1, 4);
  f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == 1; }, 1s);
  f.executor.run_until([] { return false; }, 4ms);  // they run
  f.publish(kV1, kV0);
  ASSERT_TRUE(f.run_until_generated(4));
  const auto installed = f.heard->all<messages::Installed>();
  ASSERT_EQ(installed.size(), 2u);
  EXPECT_EQ(installed[1].version, kV1);
  EXPECT_EQ(installed[0].checksum, checksum_of(kV0));
  EXPECT_EQ(installed[1].checksum, checksum_of(kV1));
  EXPECT_NEAR(installed[1].seconds, 0.002, 1e-9);
  bool mixed = false;
  for (const auto& [id, header] : f.generated())
    for (const messages::TrajectoryHeader& t : header.trajectories)
      mixed |= t.oldest == kV0 && t.newest == kV1;
  EXPECT_TRUE(mixed);
}

// A receiver of a version's first token has heard before which weights made it.
TEST(RolloutActor, TellsWhatItInstalledBeforeTheFirstTokenByIt_RO1) {
  Fixture f;
  f.publish(kV0, kV0);
  f.assign(1, 30);
  f.executor.run_until([&] { return !f.generated().empty(); }, 1s);
  f.publish(kV1, kV0);
  f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == 2; }, 1s);
  f.publish(kV2, kV0);
  ASSERT_TRUE(f.run_until_generated(30));
  std::map<PolicyVersion, std::uint64_t> known;
  for (const messages::RolloutEvents& event : f.heard->events) {
    if (const auto* installed = std::get_if<messages::Installed>(&event))
      known[installed->version] = installed->checksum;
    const auto* generated = std::get_if<messages::Generated>(&event);
    if (!generated) continue;
    for (const messages::GroupHeader& group : generated->groups)
      for (const messages::TrajectoryHeader& trajectory : group.trajectories)
        EXPECT_EQ(known[trajectory.newest], checksum_of(trajectory.newest)) << "RO-1";
  }
  EXPECT_EQ(known.size(), 3u);
}

// Another actor may share the subscriber, and the buffer of a copy ends with this actor.
TEST(RolloutActor, ItsEndEndsACopyThatIsUnderWay) {
  Fixture f;
  f.publish(kV0, kV0);
  f.executor.run_until([&] { return !f.weight_calls->empty(); }, 1s);
  f.system.stop("j/rollout/0");
  f.executor.run_until([&] { return !f.system.alive("j/rollout/0"); }, 1s);
  EXPECT_EQ(f.weight_calls->back(), "cancel");
}

TEST(RolloutActor, PinnedGroupsGetExactlyTheirVersionOrAreUnservable) {
  Fixture f;
  f.publish(kV0, kV0);
  f.publish(kV1, kV0);
  f.assign(1, 3, kV1);
  f.assign(4, 3, kV0);
  f.publish(kV2, kV1);
  f.assign(7, 3, kV2);
  f.assign(10, 1, kV0);  // gone by now, unless it was copied before
  ASSERT_TRUE(f.executor.run_until(
      [&] { return f.generated().size() + f.heard->all<messages::Unservable>().size() == 10; },
      10s));
  for (const auto& [id, header] : f.generated())
    for (const messages::TrajectoryHeader& t : header.trajectories) {
      EXPECT_EQ(t.oldest, t.newest);
      EXPECT_EQ(t.oldest, id.value <= 3 ? kV1 : id.value >= 7 && id.value < 10 ? kV2 : kV0);
    }
  for (const messages::Unservable& refused : f.heard->all<messages::Unservable>())
    EXPECT_EQ(refused.reason, messages::UnservableReason::kVersionGone);
}

// The publisher has lost the newest version: the rollout asks now and then, and says so.
TEST(RolloutActor, EvaluatesByThePinnedVersion) {
  Fixture f;
  f.publish(kV0, kV0);
  f.assign(1, 6);
  f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == 1; }, 1s);
  f.tell(messages::Evaluate{
      .evaluation = messages::EvaluationId{5}, .version = kV0, .prompts = {{0, "a"}, {7, "b"}}});
  // An evaluation may come in several messages; one may be empty.
  f.tell(messages::Evaluate{
      .evaluation = messages::EvaluationId{5}, .version = kV0, .prompts = {{1, "c"}}});
  f.tell(messages::Evaluate{.evaluation = messages::EvaluationId{6}, .version = kV0});
  f.publish(kV1, kV0);
  ASSERT_TRUE(
      f.executor.run_until([&] { return f.heard->all<messages::Evaluated>().size() == 3; }, 10s));
  EXPECT_EQ(f.heard->all<messages::Installed>().size(), 1u) << "the install waits";
  std::set<std::int32_t> indices;
  for (const messages::Evaluated& done : f.heard->all<messages::Evaluated>())
    for (const messages::EvaluationText& text : done.completions) {
      EXPECT_EQ(done.evaluation, messages::EvaluationId{5});
      indices.insert(text.index);
    }
  EXPECT_EQ(indices, (std::set<std::int32_t>{0, 1, 7}));
  ASSERT_TRUE(f.run_until_generated(6));
  ASSERT_TRUE(
      f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == 2; }, 1s));
}

// This happens where the warm start ends while the untrained weights are still being evaluated:
// nothing else waits, so the end of the first evaluation alone must bring the install about.
TEST(RolloutActor, AnUpdateThatWaitedForTheLastRequestIsInstalled) {
  FakeEngineConfig instant = Fixture::engine_config();
  instant.step_time = instant.sequence_time = instant.install_time = Duration{0};
  instant.long_every = 1;  // the first evaluation outlasts the copying
  Fixture f(1, instant);
  f.publish(kV0, kV0);
  f.tell(messages::Evaluate{
      .evaluation = messages::EvaluationId{1}, .version = kV0, .prompts = {{0, "a"}}});
  f.publish(kV1, kV0);
  f.tell(messages::Evaluate{
      .evaluation = messages::EvaluationId{2}, .version = kV1, .prompts = {{0, "a"}}});
  ASSERT_TRUE(
      f.executor.run_until([&] { return f.heard->all<messages::Evaluated>().size() == 2; }, 10s));
  EXPECT_EQ(f.heard->all<messages::Installed>().back().version, kV1);
}

TEST(RolloutActor, AnEvaluationThatNoMessageHoldsGoesInSeveral) {
  Fixture f;
  f.heard->room = 150;
  f.publish(kV0, kV0);
  messages::Evaluate work{.evaluation = messages::EvaluationId{5}, .version = kV0};
  for (std::int32_t i = 0; i < 20; ++i) work.prompts.push_back({i, "p"});
  f.tell(work);
  const auto texts = [&] {
    std::size_t count = 0;
    for (const messages::Evaluated& part : f.heard->all<messages::Evaluated>())
      count += part.completions.size();
    return count;
  };
  ASSERT_TRUE(f.executor.run_until([&] { return texts() == 20; }, 10s));
  EXPECT_GT(f.heard->all<messages::Evaluated>().size(), 2u);
}

// RO-3, RO-5: a group that is being stored while it is handed back is still answered, since no
// other process knows of its payload; a group that is not being stored is forgotten.
TEST(RolloutActor, HandBackForgetsGroupsButNoPayload) {
  Fixture f;
  f.publish(kV0, kV0);
  f.assign(1, 8);
  ASSERT_TRUE(f.executor.run_until([&] { return f.store.writes_open > 0; }, 1s));
  EXPECT_TRUE(f.store.payloads.empty());
  f.tell(messages::HandBack{});
  f.executor.run_until([] { return false; }, 1s);
  EXPECT_FALSE(f.store.payloads.empty());
  EXPECT_EQ(f.generated().size(), f.store.payloads.size()) << "RO-5";
  const std::size_t before = f.generated().size();
  EXPECT_LT(before, 8u) << "the others are forgotten";
  f.assign(101, 3);
  ASSERT_TRUE(f.run_until_generated(before + 3));
  EXPECT_EQ(f.generated().rbegin()->first, GroupId{103});
}

TEST(RolloutActor, AnExchangeThatFollowsHearsWhatIsHeldAndWhatWasNotKept_RO6) {
  Fixture f;
  f.publish(kV0, kV0);
  f.assign(1, 3);
  ASSERT_TRUE(f.run_until_generated(3));
  f.tell(messages::GroupsKept{{GroupId{2}}});
  f.assign(4, 2);
  f.tell(messages::HandBack{{GroupId{5}}});
  f.heard->events.clear();
  f.tell(MeetAgain{});
  ASSERT_TRUE(f.executor.run_until([&] { return f.generated().size() >= 3; }, 60s));
  const auto& back = std::get<messages::RolloutBack>(f.heard->events.front());
  EXPECT_EQ(back.from.incarnation, Incarnation{3});
  EXPECT_EQ(back.capacity, 24);
  EXPECT_EQ(back.installed, kV0);
  EXPECT_EQ(back.checksum, checksum_of(kV0));
  std::vector<GroupId> held;
  for (const messages::HeldGroup& group : back.held) {
    EXPECT_EQ(group.attempt, 1u);
    held.push_back(group.group);
  }
  EXPECT_EQ(held, (std::vector<GroupId>{GroupId{1}, GroupId{3}, GroupId{4}}));
  std::vector<GroupId> told;
  for (const auto& [group, header] : f.generated()) told.push_back(group);
  EXPECT_EQ(told, held) << "the new one once it is there";
  f.tell(messages::GroupsKept{held});
  f.heard->events.clear();
  f.tell(MeetAgain{});
  f.executor.run_until([] { return false; }, 1s);
  EXPECT_TRUE(f.heard->all<messages::RolloutBack>().at(0).held.empty());
  EXPECT_TRUE(f.heard->all<messages::Generated>().empty());
}

// RO-1. A version is copied while the engine still computes with the one before.
TEST(RolloutActor, AnExchangeThatFollowsHearsOfTheVersionThatIsInUse) {
  Fixture f;
  f.in_place.can = false;
  f.publish(kV0, kV0);
  f.assign(1, 4, kV0);
  ASSERT_TRUE(f.executor.run_until([&] { return f.store.writes_open > 0; }, 1s));
  f.publish(kV1, kV0);
  f.assign(5, 4, kV1);
  for (int met = 0; met < 1000; ++met) {
    f.executor.at(f.executor.now() + 500us, [] {});  // virtual time moves only to timers
    f.executor.run_until([] { return false; }, 500us);
    f.tell(MeetAgain{});
  }
  f.executor.run_until([] { return false; }, 1s);
  std::optional<PolicyVersion> in_use;
  int before = 0, between = 0, after = 0;
  for (const messages::RolloutEvents& event : f.heard->events) {
    if (const auto* installed = std::get_if<messages::Installed>(&event))
      in_use = installed->version;
    const auto* back = std::get_if<messages::RolloutBack>(&event);
    if (!back) continue;
    EXPECT_EQ(back->installed.value_or(in_use.value()), in_use);
    ++(!back->installed ? between : in_use == kV1 ? after : before);
  }
  EXPECT_GT(before, 0);
  EXPECT_GT(between, 0) << "the next version is copied";
  EXPECT_GT(after, 0);
}

TEST(RolloutActor, RetriesAFullLinkAndAFailingStoreAndGivesUpInTheEnd) {
  Fixture f;
  f.heard->refusals_left = 5;
  f.store.failures_left = 3;
  f.publish(kV0, kV0);
  f.assign(1, 2);
  ASSERT_TRUE(f.run_until_generated(2));
  EXPECT_FALSE(f.failure);
  EXPECT_TRUE(std::holds_alternative<messages::RolloutUp>(f.heard->events.front())) << "in order";
  // No answer may be a network that is cut, for a while.
  f.store.failures_left = std::numeric_limits<int>::max();
  f.assign(3, 1);
  const auto failed = [&] { return f.failure.has_value(); };
  EXPECT_FALSE(f.executor.run_until(failed, payload::kUnansweredMax - 1min));
  EXPECT_TRUE(f.executor.run_until(failed, 2min));
}

class UnwritableDisk : public testing::TestWithParam<int> {};  // the errno of its writes
INSTANTIATE_TEST_SUITE_P(Errors, UnwritableDisk, testing::Values(ENOSPC, EROFS, EIO));

TEST_P(UnwritableDisk, IsWaitedForAsLongAsItTakes) {
  Fixture f;
  f.store.failure.os_error = GetParam();
  f.store.failures_left = 1000;
  f.publish(kV0, kV0);
  f.assign(1, 2);
  EXPECT_FALSE(f.executor.run_until([&] { return f.failure || !f.generated().empty(); }, 60s));
  const auto told = [&] { return f.heard->all<messages::RolloutStats>().back().no_room; };
  EXPECT_NE(told().find("no store"), std::string::npos);
  f.store.failures_left = 0;
  EXPECT_TRUE(f.run_until_generated(2));
  f.executor.run_until([] { return false; }, 2s);
  EXPECT_EQ(told(), "");
}

TEST(RolloutActor, ADiskThatCannotBeWrittenForADayEndsTheRollout) {
  Fixture f;
  f.store.failure.os_error = ENOSPC;
  f.store.failures_left = std::numeric_limits<int>::max();
  f.publish(kV0, kV0);
  f.assign(1, 1);
  const auto failed = [&] { return f.failure.has_value(); };
  EXPECT_FALSE(f.executor.run_until(failed, kRoomWaitMax - 1min));
  EXPECT_TRUE(f.executor.run_until(failed, 2min));
}

TEST(RolloutActor, UnservablePromptsAndStatisticsAreReported) {
  Fixture f;
  f.publish(kV0, kV0);
  f.tell(messages::Assign{{{.group = GroupId{9}, .attempt = 2, .n = 4, .prompt = "too long"}}});
  f.assign(1, 2);
  ASSERT_TRUE(f.run_until_generated(2));
  ASSERT_EQ(f.heard->all<messages::Unservable>().size(), 1u);
  EXPECT_EQ(f.heard->all<messages::Unservable>()[0].attempt, 2u);
  ASSERT_TRUE(f.executor.run_until(
      [&] {
        const auto stats = f.heard->all<messages::RolloutStats>();
        return !stats.empty() && stats.back().generation_tokens > 0;
      },
      5s));
  const messages::RolloutStats stats = f.heard->all<messages::RolloutStats>().back();
  EXPECT_GT(stats.busy_seconds, 0);
  EXPECT_EQ(stats.requests_running, 0);
  expect_counts_fit(stats.latencies, stats.generation_tokens);
  EXPECT_EQ(count_of(stats.latencies.request), 8u) << "two groups of four";
}

TEST(RolloutActor, AnEngineThatFailsEndsTheActorWithItsReason_EN5) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.failing_prompt = "p2";
  Fixture f(1, engine);
  f.publish(PolicyVersion{0}, PolicyVersion{0});
  f.assign(1, 3);
  ASSERT_TRUE(f.executor.run_until([&] { return f.failure.has_value(); }, 60s));
  EXPECT_NE(f.failure->message.find("NaN"), std::string::npos) << f.failure->message;
  EXPECT_TRUE(f.generated().empty());
  ASSERT_EQ(f.heard->all<messages::EngineBroke>().size(), 1u) << "what it holds is suspected";
}

TEST(RolloutActor, OneSeedGivesTheSameRunTwice) {
  const auto trace = [](std::uint64_t seed) {
    Fixture f(seed);
    f.publish(kV0, kV0);
    f.assign(1, 10);
    f.executor.run_until([] { return false; }, 7ms);
    f.publish(kV1, kV0);
    f.run_until_generated(10);
    std::string text;
    for (const messages::RolloutEvents& event : f.heard->events) text += wire::encode(event);
    for (const std::string& payload : f.store.payloads) text += payload;
    return checksum64(std::as_bytes(std::span(text)));
  };
  EXPECT_EQ(trace(1), trace(1));
}

}  // namespace
}  // namespace tandem::rollout
