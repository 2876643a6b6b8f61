// The rollout actor with a FakeEngine in the simulated executor; the test plays the exchange, the
// publisher of weights and the store of payloads.
#include "actors/rollout/rollout_actor.h"

#include <gtest/gtest.h>

#include <map>

#include "actors/rollout/fake_engine.h"
#include "actors/rollout/fake_weights.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/digest.h"
#include "runtime/wire/codec.h"
#include "tests/actors/messages/latency_counts.h"
#include "tests/actors/rollout/versions.h"

namespace tandem::rollout {
namespace {

using namespace std::chrono_literals;
using actor::Delivery;

// Keeps the messages of a rollout; a test can make it refuse them as a full mailbox does.
struct Heard final : actor::Target<messages::RolloutEvents> {
  Delivery post(messages::RolloutEvents event) override {
    if (refusals_left > 0) {
      --refusals_left;
      return Delivery::kFull;
    }
    events.push_back(std::move(event));
    return Delivery::kAccepted;
  }
  template <class M>
  std::vector<M> all() const {
    std::vector<M> some;
    for (const messages::RolloutEvents& event : events)
      if (const auto* m = std::get_if<M>(&event)) some.push_back(*m);
    return some;
  }
  std::uint64_t bytes_max() const override { return room; }
  std::vector<messages::RolloutEvents> events;
  int refusals_left = 0;
  std::uint64_t room = actor::kBytesUnlimited;  // the largest message that is taken
};

std::uint64_t checksum_of(PolicyVersion version) {
  return 100 + static_cast<std::uint64_t>(version.value);
}

struct InPlace {  // how versions are read in place
  bool can = true;
  bool lose = false;  // a version that is held is withdrawn before it is installed
};

// Notes in which order it is told of a broadcast and asked for a version.
class NotingSubscriber final : public FakeWeightSubscriber {
 public:
  NotingSubscriber(std::shared_ptr<const FakeWeightBoard> board,
                   std::shared_ptr<std::vector<std::string>> calls, const InPlace* in_place)
      : FakeWeightSubscriber(std::move(board), 3), calls_(std::move(calls)), in_place_(in_place) {}
  void look_at(const wire::WeightSource& source) override {
    calls_->push_back("look at " + source.endpoint);
  }
  void expect(PolicyVersion version, std::uint64_t checksum,
              const wire::BroadcastPlace& place) override {
    calls_->push_back("expect " + std::to_string(version.value) + " of " +
                      std::to_string(checksum) + " at " + std::to_string(place.epoch) + "/" +
                      std::to_string(place.sequence));
  }
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override {
    calls_->push_back("begin " + std::to_string(version.value));
    return FakeWeightSubscriber::begin(version, buffer);
  }
  void cancel() override {
    calls_->push_back("cancel");
    FakeWeightSubscriber::cancel();
  }
  bool in_place() const override { return in_place_->can; }
  std::span<const std::byte> held() override {
    calls_->push_back("held");
    return std::span(&byte_, in_place_->lose ? 0 : 1);
  }

 private:
  const std::shared_ptr<std::vector<std::string>> calls_;
  const InPlace* const in_place_;
  const std::byte byte_{};
};

// A payload store in virtual time.
struct Store {
  actor::SimulatedExecutor* executor;
  std::vector<std::string> payloads;
  int failures_left = 0;
  Error failure{ErrorCode::kUnreachable, "no store"};
  int writes_open = 0;
  int writes_open_max = 0;

  void write(std::vector<std::string> batch, payload::WriteDone done) {
    writes_open_max = std::max(writes_open_max, ++writes_open);
    executor->at(executor->now() + 5ms, [this, batch = std::move(batch), done = std::move(done)] {
      --writes_open;
      if (failures_left > 0) return --failures_left, done(failure);
      std::vector<wire::PayloadRef> refs;
      for (const std::string& payload : batch) {
        refs.push_back({.node = "n", .offset = payloads.size(), .bytes = payload.size()});
        payloads.push_back(payload);
      }
      done(std::move(refs));
    });
  }
};

struct Fixture {
  explicit Fixture(std::uint64_t seed = 1, FakeEngineConfig engine = engine_config())
      : executor(seed), system(executor, [this](auto&, const Error& why) { failure = why; }) {
    store.executor = &executor;
    const auto heard_target = std::shared_ptr<actor::Target<messages::RolloutEvents>>(heard);
    ref = system.spawn<RolloutActor>("j/rollout/0", [=, this] {
      return std::make_unique<RolloutActor>(
          RolloutConfig{
              .self = {"j/rollout/0", Incarnation{3}}, .group_size = 4, .max_num_seqs = 16},
          std::make_unique<FakeEngine>(engine),
          std::make_shared<NotingSubscriber>(board, weight_calls, &in_place),
          RolloutActor::Connections{
              .exchange =
                  actor::Ref<messages::RolloutEvents>({"exchange/j", Incarnation{1}}, heard_target),
              .write = [this](auto batch, auto done) { store.write(std::move(batch), done); },
              .progress = [this](const char*, Time) { ++beats; }});
    });
    EXPECT_EQ(ref.tell(StartRollout{actor::narrow<std::variant<Step>>(ref)}), Delivery::kAccepted);
  }
  ~Fixture() {  // the actor refers to itself, so it has to end
    system.stop("j/rollout/0");
    executor.run_until([this] { return !system.alive("j/rollout/0"); }, 1s);
  }
  static FakeEngineConfig engine_config() {
    return {.engine = {.args = {.max_num_seqs = 16}, .max_response_length = 32},
            .step_time = 1ms,
            .sequence_time = 10us,
            .install_time = 2ms,
            .unservable_prompt = "too long"};
  }
  void tell(RolloutActor::Inbox message) {
    EXPECT_EQ(ref.tell(std::move(message)), Delivery::kAccepted);
  }
  void publish(PolicyVersion version, PolicyVersion oldest) {
    board->publish(version, oldest, checksum_of(version));
    tell(messages::NewVersion{.version = version,
                              .oldest_retained = oldest,
                              .source = {},
                              .broadcast = {},
                              .checksum = checksum_of(version)});
  }
  void assign(std::uint64_t first, std::uint64_t count,
              std::optional<PolicyVersion> version = std::nullopt) {
    messages::Assign work;
    for (std::uint64_t i = first; i < first + count; ++i)
      work.groups.push_back({.group = GroupId{i},
                             .attempt = 1,
                             .seed = i,
                             .n = 4,
                             .prompt = "p" + std::to_string(i),
                             .version = version});
    tell(std::move(work));
  }
  std::map<GroupId, messages::GroupHeader> generated() const {
    std::map<GroupId, messages::GroupHeader> groups;
    for (const messages::Generated& message : heard->all<messages::Generated>())
      for (const messages::GroupHeader& header : message.groups) {
        const bool fresh = groups.emplace(header.group, header).second;
        EXPECT_TRUE(fresh) << "RO-2";
      }
    return groups;
  }
  bool run_until_generated(std::size_t groups) {
    return executor.run_until([&] { return generated().size() >= groups; }, 60s);
  }

  actor::SimulatedExecutor executor;
  actor::System system;
  std::optional<Error> failure;
  InPlace in_place;
  std::shared_ptr<FakeWeightBoard> board = std::make_shared<FakeWeightBoard>();
  std::shared_ptr<std::vector<std::string>> weight_calls =
      std::make_shared<std::vector<std::string>>();
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  Store store{};
  actor::Ref<RolloutActor::Inbox> ref;
  int beats = 0;
};

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
  EXPECT_GT(f.beats, 0);
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

TEST(RolloutActor, ABroadcastIsExpectedBeforeItsVersionIsWanted) {
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

TEST(RolloutActor, AVersionThatLiesInPlaceIsHeldUntilItIsInstalled) {
  FakeEngineConfig engine = Fixture::engine_config();
  engine.installs_in_place = true;
  Fixture f(1, engine);
  f.publish(kV0, kV0);
  ASSERT_TRUE(
      f.executor.run_until([&] { return !f.heard->all<messages::Installed>().empty(); }, 1s));
  EXPECT_EQ(*f.weight_calls, (std::vector<std::string>{"begin 0", "held", "cancel"}));
}

// A publisher may need the place while sequences run for minutes before the update.
TEST(RolloutActor, AVersionThatLiesInPlaceIsNotHeldWhileTheUpdateWaits) {
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

TEST(RolloutActor, AVersionThatIsWithdrawnInItsPlaceIsNotInstalled) {
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
TEST(RolloutActor, AVersionThatCannotBeHadIsAskedForNowAndThenAndTold) {
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
  f.store.failures_left = 1000;
  f.assign(3, 1);
  EXPECT_TRUE(f.executor.run_until([&] { return f.failure.has_value(); }, 60s));
}

TEST(RolloutActor, WaitsForRoomOnAFullDiskAsLongAsItTakes) {
  Fixture f;
  f.store.failure.os_error = ENOSPC;
  f.store.failures_left = 1000;
  f.publish(kV0, kV0);
  f.assign(1, 2);
  EXPECT_FALSE(f.executor.run_until([&] { return f.failure || !f.generated().empty(); }, 60s));
  f.store.failures_left = 0;
  EXPECT_TRUE(f.run_until_generated(2));
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
