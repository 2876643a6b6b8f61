// How a rollout actor comes to versions of the weights: broadcast, in place, withdrawn, damaged.
//
// Tests actors/rollout/rollout_actor.h.
#include <gtest/gtest.h>

#include "tests/actors/rollout/rollout_stage.h"

namespace tandem::rollout {
namespace {

TEST(RolloutVersions, ABroadcastIsExpectedBeforeItsVersionIsWanted) {
  Fixture f;
  f.board->publish(kV0, kV0, checksum_of(kV0));
  f.tell(messages::NewVersion{.version = kV0,
                              .oldest_retained = kV0,
                              .source = wire::WeightSource{.host = "h", .endpoint = "tcp://h:1"},
                              .broadcast = wire::BroadcastPlace{.epoch = 3, .sequence = 8},
                              .checksum = checksum_of(kV0)});
  ASSERT_TRUE(
      f.executor.run_until([&] { return !f.heard->all<messages::Installed>().empty(); }, 1s));
  f.publish(kV1, kV0);  // which is not broadcast
  ASSERT_TRUE(
      f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == 2; }, 1s));
  EXPECT_EQ(*f.weight_calls,
            (std::vector<std::string>{"look at tcp://h:1", "expect 0 of 100 at 3/8", "begin 0",
                                      "begin 1"}));
}

TEST(RolloutVersions, AVersionThatLiesInPlaceIsHeldUntilItIsInstalled) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.installs_in_place = true;
  Fixture f(1, engine);
  f.publish(kV0, kV0);
  ASSERT_TRUE(
      f.executor.run_until([&] { return !f.heard->all<messages::Installed>().empty(); }, 1s));
  EXPECT_EQ(*f.weight_calls, (std::vector<std::string>{"begin 0", "held", "cancel"}));
}

// An engine that is a server: whatever comes while it takes a version waits, or is answered, and
// the version is told of before its first token (RO-1).
TEST(RolloutVersions, AnEngineMayTakeAVersionInManySteps_RO1) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.install_steps = 50;
  Fixture f(1, engine);
  const auto installed = [&] { return f.heard->all<messages::Installed>().size(); };
  f.publish(kV0, kV0);
  f.assign(1, 2);
  f.executor.run_until([] { return false; }, 20ms);
  EXPECT_EQ(installed(), 0u);
  EXPECT_EQ(f.phases.back(), "update");
  f.publish(kV1, kV0);  // the next version waits for the one that is taken
  f.tell(messages::Evaluate{.evaluation = messages::EvaluationId{1},
                            .version = kV0,
                            .prompts = {{.index = 0, .prompt = "e"}}});
  f.tell(messages::HandBack{.groups = {GroupId{1}}});
  f.tell(MeetAgain{});
  f.assign(3, 1);
  f.executor.run_until([] { return false; }, 5ms);
  ASSERT_EQ(f.heard->all<messages::RolloutBack>().size(), 1u);
  EXPECT_FALSE(f.heard->all<messages::RolloutBack>()[0].installed) << "it is not installed yet";
  ASSERT_TRUE(f.run_until_generated(2));
  EXPECT_FALSE(f.generated().contains(GroupId{1})) << "it was handed back";
  ASSERT_TRUE(f.executor.run_until([&] { return installed() >= 2; }, 5s));
  bool told = false;
  for (const messages::RolloutEvents& event : f.heard->events) {
    told = told || std::holds_alternative<messages::Installed>(event);
    EXPECT_TRUE(told || !std::holds_alternative<messages::Generated>(event)) << "RO-1";
  }
  EXPECT_GE(f.heard->all<messages::Installed>()[0].seconds, 0.05) << "all of its steps";
  EXPECT_EQ(std::ranges::count(*f.weight_calls, "begin 0"), 1) << "it is not begun again meanwhile";
}

TEST(RolloutVersions, ARolloutMayEndWhileItsEngineTakesAVersion) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.install_steps = 50;
  Fixture f(1, engine);
  f.publish(kV0, kV0);
  f.assign(1, 2);
  f.executor.run_until([] { return false; }, 20ms);
  EXPECT_TRUE(f.heard->all<messages::Installed>().empty());
}

// A hang counts against the prompts by its phase, and weights are no prompts.
TEST(RolloutVersions, PromptsAndWeightsHavePhasesOfTheirOwn) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.engine.partial_rollout = false;
  engine.long_every = 1;
  Fixture f(1, engine);
  const auto installs = [&](std::size_t count) {
    return f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == count; },
                                1s);
  };
  f.publish(kV0, kV0);
  ASSERT_TRUE(installs(1));
  f.executor.run_until([] { return false; }, 10ms);
  ASSERT_EQ(f.phases.back(), "idle");
  f.phases.clear();
  f.assign(1, 1);
  f.executor.run_until([] { return false; }, 4ms);  // it runs
  EXPECT_EQ(f.phases.front(), "submit") << "the engine was idle";
  EXPECT_EQ(f.phases.back(), "decode");
  f.publish(kV1, kV0);
  ASSERT_TRUE(installs(2));
  EXPECT_EQ(f.phases.back(), "update") << "the version was whole long before its install";
}

// A publisher may need the place while sequences run for minutes before the update.
TEST(RolloutVersions, AVersionThatLiesInPlaceIsNotHeldWhileTheUpdateWaits) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.installs_in_place = true;
  engine.engine.partial_rollout = false;
  engine.long_every = 1;
  Fixture f(1, engine);
  f.publish(kV0, kV0);
  f.assign(1, 1);
  f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == 1; }, 1s);
  f.executor.run_until([] { return false; }, 4ms);  // they run
  f.weight_calls->clear();
  f.publish(kV1, kV0);
  f.executor.run_until([] { return false; }, 10ms);  // as they do still
  EXPECT_TRUE(f.generated().empty());
  EXPECT_EQ(*f.weight_calls, (std::vector<std::string>{"begin 1", "cancel"}));
  ASSERT_TRUE(
      f.executor.run_until([&] { return f.heard->all<messages::Installed>().size() == 2; }, 1s));
  EXPECT_EQ(*f.weight_calls,
            (std::vector<std::string>{"begin 1", "cancel", "begin 1", "held", "cancel"}));
}

TEST(RolloutVersions, AVersionThatIsWithdrawnInItsPlaceIsNotInstalled) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.installs_in_place = true;
  Fixture f(1, engine);
  f.in_place.lose = true;
  f.publish(kV0, kV0);
  ASSERT_TRUE(f.executor.run_until(
      [&] { return std::ranges::count(*f.weight_calls, "begin 0") >= 2; }, 1s));
  EXPECT_TRUE(f.heard->all<messages::Installed>().empty());
  f.in_place.lose = false;
  EXPECT_TRUE(
      f.executor.run_until([&] { return !f.heard->all<messages::Installed>().empty(); }, 1s));
  EXPECT_FALSE(f.failure);
}

TEST(RolloutVersions, AVersionThatCannotBeHadIsAskedForNowAndThenAndTold) {
  for (const PolicyVersion oldest_retained : {kV0, kV1, kV2}) {
    Fixture f;
    f.tell(messages::NewVersion{.version = kV1, .oldest_retained = oldest_retained});
    f.assign(1, 1);
    f.executor.run_until([&] { return f.heard->all<messages::RolloutStats>().size() >= 5; }, 10s);
    EXPECT_LE(f.weight_calls->size(), 2u * 5 * 20) << "a cancel and a begin each 50 ms";
    const messages::RolloutStats told = f.heard->all<messages::RolloutStats>().back();
    EXPECT_EQ(told.missing, kV1);
    EXPECT_NEAR(told.missing_seconds, 5, 0.5);
    f.publish(kV1, kV1);
    EXPECT_TRUE(f.run_until_generated(1));
    f.executor.run_until([&] { return !f.heard->all<messages::RolloutStats>().back().missing; },
                         10s);
    EXPECT_EQ(f.heard->all<messages::RolloutStats>().back().missing, std::nullopt);
  }
}

TEST(RolloutVersions, ADamagedOneIsToldNowAndThenAndInstalledOnceItIsWhole) {
  Fixture f;
  f.publish(kV0, kV0);
  f.board->damage(kV0);
  f.assign(1, 1);
  const auto told = [&] { return f.heard->all<messages::VersionDamaged>(); };
  ASSERT_TRUE(f.executor.run_until([&] { return told().size() >= 3; }, 10s));
  EXPECT_GE(f.executor.now().ns, 2'000'000'000) << "each time the whole version is read";
  EXPECT_EQ(told().back().version, kV0);
  EXPECT_NE(told().back().message.find("damaged"), std::string::npos) << told().back().message;
  EXPECT_TRUE(f.heard->all<messages::Installed>().empty());
  f.board->publish(kV0, kV0, checksum_of(kV0));
  EXPECT_TRUE(f.run_until_generated(1));
  const std::size_t before = told().size();
  f.executor.run_until([] { return false; }, 5s);
  EXPECT_EQ(told().size(), before);
  EXPECT_FALSE(f.failure);
}

}  // namespace
}  // namespace tandem::rollout
