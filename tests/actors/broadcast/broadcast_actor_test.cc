// The broadcast actor in the simulated executor, with a BroadcastRank that does nothing by itself:
// the test makes every event.
#include "actors/broadcast/broadcast_actor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::broadcast {
namespace {

using namespace std::chrono_literals;
using actor::Delivery;
using collective::NcclKind;
using collective::NcclState;
using weights::BroadcastEvent;
using Kind = BroadcastEvent::Kind;

// Notes the calls that it gets, and reports the events that the test gives it.
class NotingRank final : public weights::BroadcastRank {
 public:
  void open(std::uint64_t epoch, int size) override { note("open", epoch, size); }
  void use(std::uint64_t epoch) override { note("use", epoch, 0); }
  void join(const collective::NcclRendezvous& rendezvous, int rank) override {
    joined = rendezvous;
    note("join", rendezvous.epoch, rank);
  }
  void leave(std::uint64_t epoch, const std::string& why) override {
    note("leave " + why, epoch, 0);
  }
  std::vector<BroadcastEvent> take_events() override { return std::exchange(events, {}); }
  void on_event(std::function<void()> wake) override { wake_ = std::move(wake); }

  void happen(BroadcastEvent event) {
    events.push_back(std::move(event));
    if (wake_) wake_();
  }

  std::vector<std::string> calls;
  std::vector<BroadcastEvent> events;
  collective::NcclRendezvous joined;

 private:
  void note(const std::string& call, std::uint64_t epoch, int number) {
    calls.push_back(call + " " + std::to_string(epoch) + " " + std::to_string(number));
  }
  std::function<void()> wake_;
};

// Keeps the messages to the exchange; a test can make it refuse them as a full mailbox does.
struct Exchange final : actor::Target<messages::BroadcastEvents> {
  Delivery post(messages::BroadcastEvents event) override {
    if (refusals_left > 0) {
      --refusals_left;
      return Delivery::kFull;
    }
    heard.push_back(std::move(event));
    return Delivery::kAccepted;
  }
  template <class M>
  std::vector<M> all() const {
    std::vector<M> some;
    for (const messages::BroadcastEvents& event : heard)
      if (const auto* m = std::get_if<M>(&event)) some.push_back(*m);
    return some;
  }
  std::vector<messages::BroadcastEvents> heard;
  int refusals_left = 0;
};

// "joined 3": the kind of a message and its epoch.
std::string text_of(const messages::BroadcastEvents& event) {
  const char* const kinds[] = {"up", "opened", "joined", "in use", "failed", "left", "progress"};
  const std::uint64_t epoch = std::visit(
      [](const auto& message) -> std::uint64_t {
        if constexpr (requires { message.epoch; })
          return message.epoch;
        else
          return 0;
      },
      event);
  return std::string(kinds[event.index()]) + " " + std::to_string(epoch);
}

std::string text_of(const BroadcastEvent& event) {
  const char* const kinds[] = {"opened", "joined", "in use", "failed", "left"};
  return std::string(kinds[static_cast<std::size_t>(event.kind)]) + " " +
         std::to_string(event.epoch);
}

weights::WeightsLayout layout_of_norm(std::int64_t width) {
  device::Manifest manifest;
  manifest.add("norm.weight", device::DType::kF32, {width});
  return weights::layout_of(manifest);
}

messages::JoinEpoch invitation(std::uint64_t epoch) {
  return {.epoch = epoch,
          .unique_id = std::string(collective::kNcclUniqueIdBytes, 'u'),
          .rank = 2,
          .size = 3,
          .layout_hash = layout_of_norm(16).hash,
          .layout = layout_of_norm(16).manifest_json};
}

struct World {
  explicit World(bool leads, std::uint64_t seed = 1) : executor(seed) {
    actor = system.spawn<BroadcastActor>("job/rollout/0/broadcast", [this, leads] {
      return std::make_unique<BroadcastActor>(
          BroadcastActorConfig{.self = {"job/rollout/0", Incarnation{4}},
                               .leads = leads,
                               .nccl_version = 22809,
                               .layout = layout_of_norm(16),
                               .communicator = "job/weights"},
          rank, records,
          actor::Ref<messages::BroadcastEvents>({"exchange/job", Incarnation{1}}, exchange));
    });
    tell(StartBroadcast{});
  }
  void tell(BroadcastActor::Inbox message) {
    EXPECT_EQ(actor.tell(std::move(message)), Delivery::kAccepted);
    pass(0s);
  }
  void pass(Duration duration) {
    executor.at(executor.now() + duration, [] {});  // else the clock stops before
    executor.run_until([] { return false; }, duration);
  }
  std::vector<std::string> heard() const {
    std::vector<std::string> texts;
    for (const messages::BroadcastEvents& event : exchange->heard) texts.push_back(text_of(event));
    return texts;
  }
  collective::NcclRecords::Id begin(std::uint64_t epoch, std::uint64_t sequence,
                                    const std::string& communicator = "job/weights") {
    return records->add({.communicator = communicator,
                         .epoch = epoch,
                         .rank = 2,
                         .sequence = sequence,
                         .kind = NcclKind::kBroadcast,
                         .label = "bucket " + std::to_string(sequence),
                         .bytes = 4096,
                         .peers = {0},
                         .state = NcclState::kEntered,
                         .enqueued_at = executor.now(),
                         .started_at = {},
                         .ended_at = {}});
  }

  actor::SimulatedExecutor executor;
  std::vector<std::string> failures;
  actor::System system{
      executor, [this](const ActorId&, const Error& error) { failures.push_back(error.message); }};
  std::shared_ptr<NotingRank> rank = std::make_shared<NotingRank>();
  std::shared_ptr<collective::NcclRecords> records = std::make_shared<collective::NcclRecords>();
  std::shared_ptr<Exchange> exchange = std::make_shared<Exchange>();
  actor::Ref<BroadcastActor::Inbox> actor;
};

TEST(BroadcastActor, TheLearnerOpensAnEpochAndUsesIt) {
  World world(true);
  ASSERT_EQ(world.exchange->all<messages::BroadcastUp>().size(), 1u);
  EXPECT_EQ(world.exchange->all<messages::BroadcastUp>()[0].nccl_version, 22809);
  world.tell(messages::OpenEpoch{.epoch = 9, .size = 3});
  EXPECT_EQ(world.rank->calls, (std::vector<std::string>{"open 9 3"}));
  BroadcastEvent opened{.kind = Kind::kOpened, .epoch = 9, .unique_id = {}, .message = {}};
  opened.unique_id.internal[0] = 'a';
  opened.unique_id.internal[collective::kNcclUniqueIdBytes - 1] = 'z';
  world.rank->happen(opened);
  world.rank->happen({.kind = Kind::kJoined, .epoch = 9, .unique_id = {}, .message = {}});
  world.pass(0s);
  ASSERT_EQ(world.exchange->all<messages::EpochOpened>().size(), 1u);
  const messages::EpochOpened told = world.exchange->all<messages::EpochOpened>()[0];
  EXPECT_EQ(told.from.name, "job/rollout/0");
  EXPECT_EQ(told.from.incarnation, Incarnation{4});
  EXPECT_EQ(told.layout_hash, layout_of_norm(16).hash);
  EXPECT_EQ(told.layout, layout_of_norm(16).manifest_json);
  EXPECT_EQ(told.unique_id, std::string(opened.unique_id.internal, collective::kNcclUniqueIdBytes));
  world.tell(messages::UseEpoch{.epoch = 9});
  world.rank->happen({.kind = Kind::kInUse, .epoch = 9, .unique_id = {}, .message = {}});
  world.pass(0s);
  EXPECT_EQ(world.rank->calls.back(), "use 9 0");
  EXPECT_EQ(world.heard(), (std::vector<std::string>{"up 0", "opened 9", "joined 9", "in use 9"}));
}

TEST(BroadcastActor, ARolloutJoinsByTheInvitationAndLeaves) {
  World world(false);
  world.tell(invitation(9));
  EXPECT_EQ(world.rank->calls, (std::vector<std::string>{"join 9 2"}));
  EXPECT_EQ(world.rank->joined.size, 3);
  EXPECT_EQ(world.rank->joined.layout_hash, layout_of_norm(16).hash);
  EXPECT_TRUE(std::all_of(std::begin(world.rank->joined.unique_id.internal),
                          std::end(world.rank->joined.unique_id.internal),
                          [](char c) { return c == 'u'; }));
  world.rank->happen({.kind = Kind::kFailed, .epoch = 9, .unique_id = {}, .message = "rank 1"});
  world.pass(0s);
  ASSERT_EQ(world.exchange->all<messages::EpochFailed>().size(), 1u);
  EXPECT_EQ(world.exchange->all<messages::EpochFailed>()[0].message, "rank 1");
  world.tell(messages::LeaveEpoch{.epoch = 9, .why = "it failed"});
  EXPECT_EQ(world.rank->calls.back(), "leave it failed 9 0");
  world.rank->happen({.kind = Kind::kLeft, .epoch = 9, .unique_id = {}, .message = {}});
  world.pass(0s);
  EXPECT_EQ(world.heard(), (std::vector<std::string>{"up 0", "failed 9", "left 9"}));
}

// BA-1, whatever the link and the mailbox do: some messages are refused for a while, several events
// come before the actor's turn, and orders that it refuses by itself come in between.
TEST(BroadcastActor, EventsKeepTheirOrder_BA1) {
  for_seeds(40, [](std::uint64_t seed) {
    World world(seed % 2 == 0, seed);
    Rng rng(derive_seed(seed, "events"));
    std::vector<std::string> expected{"up 0"};
    for (int i = 0; i < 60; ++i) {
      if (rng.below(4) == 0) world.exchange->refusals_left = static_cast<int>(rng.below(4));
      if (rng.below(6) == 0) {
        const std::uint64_t epoch = rng.below(5);
        expected.push_back("failed " + std::to_string(epoch));
        world.tell(messages::OpenEpoch{.epoch = epoch, .size = 1});  // no group
        continue;
      }
      BroadcastEvent event{.kind = static_cast<Kind>(rng.below(5)),
                           .epoch = rng.below(5),
                           .unique_id = {},
                           .message = {}};
      expected.push_back(text_of(event));
      world.rank->happen(std::move(event));
      if (rng.below(2) == 0) world.pass(Duration(std::chrono::milliseconds(rng.below(80))));
    }
    world.exchange->refusals_left = 0;
    world.pass(1s);
    EXPECT_EQ(world.heard(), expected) << "BA-1";
    EXPECT_TRUE(world.failures.empty());
  });
}

// It says that it is up once NCCL is out of the former epochs, of which it tells nothing more.
TEST(BroadcastActor, LeavesTheEpochsOfAnExchangeThatHasDied) {
  World world(false);
  const auto happen = [&](Kind kind, std::uint64_t epoch) {
    world.rank->happen({.kind = kind, .epoch = epoch, .unique_id = {}, .message = "w"});
    world.pass(0s);
  };
  world.tell(invitation(8));
  world.tell(invitation(9));
  happen(Kind::kJoined, 8);
  world.exchange->heard.clear();
  world.tell(MeetAgain{});
  happen(Kind::kFailed, 8);
  EXPECT_EQ(std::ranges::count(world.rank->calls,
                               "leave another exchange follows the one of this epoch 8 0"),
            1);
  happen(Kind::kJoined, 9);
  happen(Kind::kLeft, 8);
  world.pass(2s);
  EXPECT_EQ(world.heard(), (std::vector<std::string>{})) << "it is not out of epoch 9";
  happen(Kind::kLeft, 9);
  EXPECT_EQ(world.heard(), (std::vector<std::string>{"up 0"}));
  world.tell(invitation(10));
  happen(Kind::kJoined, 10);
  EXPECT_EQ(world.heard(), (std::vector<std::string>{"up 0", "joined 10"}));
}

// The current exchange had asked it into an epoch, and waits for the answer.
TEST(BroadcastActor, AnswersALeaveAlsoOfAnEpochThatItLeavesAlready) {
  World world(false);
  world.tell(invitation(9));
  world.tell(MeetAgain{});
  world.exchange->heard.clear();
  world.tell(messages::LeaveEpoch{.epoch = 9, .why = "w"});
  world.rank->happen({.kind = Kind::kLeft, .epoch = 9, .unique_id = {}, .message = {}});
  world.pass(0s);
  EXPECT_EQ(world.heard(), (std::vector<std::string>{"left 9", "up 0"}));
}

// BA-2: nothing is ever answered there, and every order goes through at once.
TEST(BroadcastActor, AnOrderWaitsForNoBroadcast_BA2) {
  World world(true);
  world.tell(messages::OpenEpoch{.epoch = 1, .size = 2});
  world.tell(messages::UseEpoch{.epoch = 1});
  world.tell(messages::OpenEpoch{.epoch = 2, .size = 4});
  world.tell(messages::LeaveEpoch{.epoch = 1, .why = "w"});
  world.tell(messages::LeaveEpoch{.epoch = 7, .why = "never heard of"});
  EXPECT_EQ(world.rank->calls,
            (std::vector<std::string>{"open 1 2", "use 1 0", "open 2 4", "leave w 1 0",
                                      "leave never heard of 7 0"}));
  EXPECT_EQ(world.executor.now(), Time{});
}

TEST(BroadcastActor, NV1AnotherLayoutIsRefusedWithItsFirstTensor) {
  World world(false);
  messages::JoinEpoch other = invitation(3);
  other.layout_hash = layout_of_norm(32).hash;
  other.layout = layout_of_norm(32).manifest_json;
  world.tell(other);
  EXPECT_TRUE(world.rank->calls.empty());
  ASSERT_EQ(world.exchange->all<messages::EpochFailed>().size(), 1u);
  EXPECT_EQ(world.exchange->all<messages::EpochFailed>()[0].message,
            "the learner's weights have another layout: tensor 0 is norm.weight (f32, [16], at "
            "byte 0) here and norm.weight (f32, [32], at byte 0) there");
}

TEST(BroadcastActor, AnOrderThatMakesNoSenseIsAnsweredAndGoesNoFurther) {
  World rollout(false), learner(true);
  std::vector<messages::JoinEpoch> wrong(6, invitation(3));
  wrong[0].unique_id.pop_back();
  wrong[1].unique_id += 'u';
  wrong[2].rank = 0;  // the learner's
  wrong[3].rank = wrong[3].size;
  wrong[4].size = 1;
  wrong[5].size = std::numeric_limits<std::int32_t>::max();
  for (const messages::JoinEpoch& order : wrong) rollout.tell(order);
  rollout.tell(messages::OpenEpoch{.epoch = 3, .size = 2});
  rollout.tell(messages::UseEpoch{.epoch = 3});
  learner.tell(invitation(3));
  learner.tell(messages::OpenEpoch{.epoch = 3, .size = -1});
  learner.tell(messages::UseEpoch{.epoch = 3});
  for (const auto& [world, count] : {std::pair(&rollout, 8u), std::pair(&learner, 3u)}) {
    EXPECT_TRUE(world->rank->calls.empty());
    const auto failed = world->exchange->all<messages::EpochFailed>();
    EXPECT_EQ(failed.size(), count);
    for (const messages::EpochFailed& answer : failed) {
      EXPECT_EQ(answer.epoch, 3u);
      EXPECT_FALSE(answer.message.empty());
    }
  }
  EXPECT_NE(rollout.exchange->all<messages::EpochFailed>()[0].message.find("127"),
            std::string::npos);
  rollout.tell(invitation(3));
  EXPECT_EQ(rollout.rank->calls.size(), 1u) << "a refused order leaves no trace";
  rollout.tell(invitation(3));
  EXPECT_EQ(rollout.rank->calls.size(), 1u) << "an epoch is joined once";
}

TEST(BroadcastActor, WhatIsLateIsToldUntilNothingIs) {
  World world(false);
  world.tell(invitation(3));
  for (std::uint64_t sequence = 1; sequence <= 10; ++sequence)
    world.records->change(world.begin(3, sequence), NcclState::kDone, world.executor.now());
  const auto hangs = world.begin(3, 11);
  world.begin(4, 1);                 // an epoch that this rank is not in
  world.begin(3, 1, "job/learner");  // another group of this process
  world.pass(900ms);
  EXPECT_TRUE(world.exchange->all<messages::EpochProgress>().empty()) << "not late yet";
  world.pass(3200ms);
  const auto progress = world.exchange->all<messages::EpochProgress>();
  ASSERT_EQ(progress.size(), 3u) << "after 2, 3 and 4 seconds";
  ASSERT_EQ(progress[0].operations.size(), messages::kEpochOperationsMax);
  const auto& operations = progress.back().operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(progress.back().epoch, 3u);
    EXPECT_EQ(operations[i].sequence, 11 - messages::kEpochOperationsMax + 1 + i) << "oldest first";
    EXPECT_EQ(operations[i].state, i + 1 == operations.size()
                                       ? messages::EpochOperationState::kEntered
                                       : messages::EpochOperationState::kDone);
  }
  EXPECT_EQ(operations.back().label, "bucket 11");
  EXPECT_EQ(operations.back().bytes, 4096u);
  EXPECT_EQ(operations.back().since_ms, 4000);
  world.records->change(hangs, NcclState::kAborted, world.executor.now());
  world.pass(5s);
  ASSERT_EQ(world.exchange->all<messages::EpochProgress>().size(), 4u) << "once more, and no more";
  EXPECT_TRUE(world.exchange->all<messages::EpochProgress>().back().operations.empty());
}

TEST(BroadcastActor, OfAnEpochThatIsLeftNothingIsLate) {
  World world(false);
  world.tell(invitation(3));
  world.begin(3, 1);
  world.rank->happen({.kind = Kind::kLeft, .epoch = 3, .unique_id = {}, .message = {}});
  world.pass(5s);
  EXPECT_TRUE(world.exchange->all<messages::EpochProgress>().empty());
}

// The publisher or subscriber belongs to another actor as well, and either may be the last to end.
TEST(BroadcastActor, ItKeepsItsRankAliveAndNoWakeComesAfterItsEnd) {
  World world(true);
  world.tell(messages::OpenEpoch{.epoch = 1, .size = 2});
  NotingRank* const rank = world.rank.get();
  const std::weak_ptr<NotingRank> alive = std::exchange(world.rank, nullptr);
  EXPECT_FALSE(alive.expired());
  world.tell(messages::LeaveEpoch{.epoch = 1, .why = "w"});
  EXPECT_EQ(rank->calls.size(), 2u);
  const std::shared_ptr<NotingRank> last = alive.lock();
  world.system.stop("job/rollout/0/broadcast");
  world.pass(0s);
  ASSERT_FALSE(world.system.alive("job/rollout/0/broadcast"));
  last->happen({.kind = Kind::kLeft, .epoch = 1, .unique_id = {}, .message = {}});
  world.pass(1s);
  EXPECT_EQ(world.heard(), (std::vector<std::string>{"up 0"}));
}

}  // namespace
}  // namespace tandem::broadcast
