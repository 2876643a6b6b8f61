// The learner actor in the simulated executor, with the fake trainer, a publisher and an exchange
// that only listen, and payloads in a map.
#include "actors/learner/learner_actor.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <map>
#include <set>

#include "actors/learner/fake_trainer.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/wire/codec.h"
#include "tests/actors/learner/map_publisher.h"

namespace tandem::learner {
namespace {

using namespace std::chrono_literals;

class Listener {
 public:
  using Inbox = messages::LearnerEvents;
  explicit Listener(std::vector<messages::LearnerEvents>* heard) : heard_(heard) {}
  template <class M>
  void handle(actor::Context&, M message) {
    heard_->push_back(std::move(message));
  }

 private:
  std::vector<messages::LearnerEvents>* heard_;
};
static_assert(actor::Actor<Listener>);

messages::GroupPayload payload_of(std::uint64_t group) {
  messages::GroupPayload payload{GroupId{group}, 0, "1+1=", {1, 2, 1, 3}, {}};
  for (std::int32_t i = 0; i < 2; ++i)
    payload.trajectories.push_back({{i, 4}, {-1, -2}, {}, PolicyVersion{0}, "2", false});
  return payload;
}

struct World {
  World() {
    exchange =
        system.spawn<Listener>("exchange", [this] { return std::make_unique<Listener>(&heard); });
  }

  void start() {
    learner = system.spawn<LearnerActor>("job/learner/0", [this] {
      return std::make_unique<LearnerActor>(
          LearnerActorConfig{
              .self = {"job/learner/0", Incarnation{++lives}},
              .publish_timeout = publish_timeout,
              .progress = [this](std::string_view phase, Time) { publishes += phase == "publish"; },
              .recorder = recorder},
          std::make_unique<FakeTrainer>(FakeTrainerConfig{.seed = 1,
                                                          .warm_start_steps = 3,
                                                          .warm_start_step_time = 1s,
                                                          .train_time = 2s,
                                                          .older_versions = older_versions,
                                                          .nonfinite = nonfinite,
                                                          .nonfinite_steps_max = 2},
                                        store),
          std::make_unique<MapPublisher>(&published, &published_in_order, &publish_os_error),
          [this](std::vector<wire::PayloadRef> refs, auto done) {
            if (reads_fail > 0) {
              --reads_fail;
              return done(Error{.message = "the bulk socket is gone"});
            }
            std::vector<std::string> bytes;
            for (const wire::PayloadRef& ref : refs)
              bytes.push_back(wire::encode(payload_of(ref.offset)));
            done(std::move(bytes));
          },
          exchange);
    });
    tell(MeetExchange{});
  }

  void kill() {
    system.stop("job/learner/0");
    run();
  }

  void tell(LearnerActor::Inbox message) {
    EXPECT_EQ(learner.tell(std::move(message)), actor::Delivery::kAccepted);
    run();
  }
  void run() {
    while (executor.step()) continue;
  }

  messages::TrainStep step(std::int64_t s) const {
    messages::TrainStep command{
        .step = StepId{s}, .groups = {}, .publish = true, .retain = PolicyVersion{s - 1}};
    for (std::uint64_t g = 0; g < 3; ++g) {
      const std::uint64_t group = static_cast<std::uint64_t>(s) * 3 + g;
      command.groups.push_back({GroupId{group}, 0, {"here", 0, group, 1, 0}, {0, 1}});
    }
    return command;
  }

  void warm_up() {
    start();
    tell(messages::PublishInitial{});
    tell(messages::WarmStart{});
  }

  template <class M>
  std::vector<M> all() const {
    std::vector<M> found;
    for (const messages::LearnerEvents& event : heard)
      if (const M* m = std::get_if<M>(&event)) found.push_back(*m);
    return found;
  }

  actor::SimulatedExecutor executor{7};
  std::vector<std::string> failures;
  actor::System system{
      executor, [this](const ActorId&, const Error& error) { failures.push_back(error.message); }};
  std::vector<messages::LearnerEvents> heard;
  std::map<PolicyVersion, std::uint64_t> published;
  std::vector<PolicyVersion> published_in_order;
  int publish_os_error = 0;  // of every publication
  std::shared_ptr<FakeStore> store = std::make_shared<FakeStore>();
  std::uint64_t lives = 0;
  Duration publish_timeout = 30s;
  int publishes = 0;  // times that the phase was entered
  int reads_fail = 0;
  std::int64_t older_versions = 0;
  std::set<StepId> nonfinite;  // steps whose gradient is not finite
  std::optional<BatchRecorder> recorder;
  actor::Ref<messages::LearnerEvents> exchange;
  actor::Ref<LearnerActor::Inbox> learner;
};

struct WarmWorld : World {
  WarmWorld() { warm_up(); }
};

TEST(LearnerActor, FromTheFirstWordToACheckpoint_LE1_LE2_LE3) {
  World world;
  world.start();
  ASSERT_EQ(world.all<messages::LearnerUp>().size(), 1u);
  EXPECT_FALSE(world.all<messages::LearnerUp>()[0].checkpoint);
  world.tell(messages::PublishInitial{});
  ASSERT_EQ(world.all<messages::Published>().size(), 1u);
  EXPECT_EQ(world.all<messages::Published>()[0].publication.version, kInitialWeights);
  EXPECT_TRUE(world.published.contains(kInitialWeights));

  world.tell(messages::WarmStart{});
  EXPECT_EQ(world.executor.now().ns, Duration(3s).count()) << "three steps of one second";
  EXPECT_GE(world.all<messages::WarmStartProgress>().size(), 2u);
  ASSERT_EQ(world.all<messages::WarmStarted>().size(), 1u);
  EXPECT_EQ(world.all<messages::WarmStarted>()[0].steps, 3);
  EXPECT_EQ(world.all<messages::WarmStarted>()[0].publication.version, PolicyVersion{0});
  EXPECT_TRUE(world.store->checkpoints.contains(StepId{0}));

  world.tell(world.step(0));
  const auto committed = world.all<messages::StepCommitted>();
  ASSERT_EQ(committed.size(), 1u);
  EXPECT_EQ(committed[0].step, StepId{0});
  ASSERT_TRUE(committed[0].publication);
  EXPECT_EQ(committed[0].publication->version, PolicyVersion{1});
  EXPECT_EQ(committed[0].publication->oldest_retained, PolicyVersion{-1});
  EXPECT_EQ(committed[0].checksum, world.published.at(PolicyVersion{1}));
  EXPECT_EQ(committed[0].report.seconds_update, 2);
  EXPECT_EQ(committed[0].report.tokens_trained, 12u);

  world.tell(messages::SaveCheckpoint{StepId{1}, {StepId{0}}});
  ASSERT_EQ(world.all<messages::CheckpointSaved>().size(), 2u) << "of steps 0 and 1";
  EXPECT_EQ(world.store->kept, std::vector<StepId>{StepId{0}});
  EXPECT_EQ(world.all<messages::CheckpointSaved>()[1].step, StepId{1});
}

TEST(LearnerActor, APublicationTellsWhereItsVersionIsBroadcast) {
  WarmWorld world;
  world.tell(world.step(0));
  EXPECT_FALSE(world.all<messages::Published>()[0].publication.broadcast);
  EXPECT_EQ(world.all<messages::WarmStarted>()[0].publication.broadcast,
            (wire::BroadcastPlace{5, 1}));
  const auto committed = world.all<messages::StepCommitted>();
  ASSERT_TRUE(committed.size() == 1 && committed[0].publication);
  EXPECT_EQ(committed[0].publication->broadcast, (wire::BroadcastPlace{5, 2}));
  EXPECT_EQ(committed[0].publication->checksum, world.published.at(PolicyVersion{1}));
}

TEST(LearnerActor, AnUnpublishedStepStillTellsItsChecksum) {
  WarmWorld world;
  messages::TrainStep step = world.step(0);
  step.publish = false;
  world.tell(step);
  ASSERT_EQ(world.all<messages::StepCommitted>().size(), 1u);
  EXPECT_FALSE(world.all<messages::StepCommitted>()[0].publication);
  EXPECT_NE(world.all<messages::StepCommitted>()[0].checksum, 0u);
  EXPECT_FALSE(world.published.contains(PolicyVersion{1}));
}

TEST(LearnerActor, AfterAKillTheSameBatchesGiveTheSameVersions_TR2) {
  WarmWorld world;
  for (std::int64_t s = 0; s < 5; ++s) {
    world.tell(world.step(s));
    if (s == 1) world.tell(messages::SaveCheckpoint{StepId{2}});
  }
  std::map<std::int64_t, std::uint64_t> known;
  for (const messages::StepCommitted& c : world.all<messages::StepCommitted>())
    known[c.step.value] = c.checksum;
  ASSERT_EQ(known.size(), 5u);
  world.kill();
  world.heard.clear();
  world.start();
  ASSERT_EQ(world.all<messages::LearnerUp>().size(), 1u);
  EXPECT_EQ(world.all<messages::LearnerUp>()[0].checkpoint, StepId{2});
  EXPECT_EQ(world.all<messages::LearnerUp>()[0].from.incarnation, Incarnation{2});
  for (std::int64_t s = 2; s < 5; ++s) world.tell(world.step(s));
  for (const messages::StepCommitted& c : world.all<messages::StepCommitted>())
    EXPECT_EQ(c.checksum, known.at(c.step.value)) << "step " << c.step.value;
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 3u);
}

TEST(LearnerActor, AnotherOrderGivesAnotherVersion) {
  WarmWorld world;
  messages::TrainStep step = world.step(0);
  world.tell(step);
  world.tell(MeetExchange{});  // back to the checkpoint of step 0
  std::swap(step.groups[0], step.groups[1]);
  world.tell(step);
  const auto committed = world.all<messages::StepCommitted>();
  ASSERT_EQ(committed.size(), 2u);
  EXPECT_EQ(committed[0].step, committed[1].step);
  EXPECT_NE(committed[0].checksum, committed[1].checksum);
}

TEST(LearnerActor, ARestoredLearnerPublishesItsCheckpoint) {
  WarmWorld world;
  world.tell(world.step(0));
  world.tell(messages::SaveCheckpoint{StepId{1}});
  world.kill();
  world.published.clear();
  world.heard.clear();
  world.start();
  world.tell(messages::PublishInitial{});
  ASSERT_EQ(world.all<messages::Published>().size(), 1u);
  EXPECT_EQ(world.all<messages::Published>()[0].publication.version, PolicyVersion{1});
}

// The state is that after the end of all processes: the published versions are gone, and the
// checkpoint is left.
TEST(LearnerActor, ARestoredLearnerPublishesTheOlderVersionsFirst_TR4) {
  World world;
  world.older_versions = 2;
  world.warm_up();
  std::map<PolicyVersion, std::uint64_t> known;
  for (std::int64_t s = 0; s < 3; ++s) {
    world.tell(world.step(s));
    known.insert(world.published.begin(), world.published.end());
  }
  world.tell(messages::SaveCheckpoint{StepId{3}});
  world.kill();
  world.published.clear();
  world.published_in_order.clear();
  world.heard.clear();
  world.start();
  world.tell(messages::PublishInitial{.retain = PolicyVersion{1}});
  ASSERT_EQ(world.all<messages::Published>().size(), 1u);
  const messages::Publication publication = world.all<messages::Published>()[0].publication;
  EXPECT_EQ(publication.version, PolicyVersion{3});
  EXPECT_EQ(publication.oldest_retained, PolicyVersion{1});
  EXPECT_EQ(world.published_in_order,
            (std::vector{PolicyVersion{1}, PolicyVersion{2}, PolicyVersion{3}}));
  for (const auto& [version, checksum] : world.published)
    EXPECT_EQ(checksum, known.at(version)) << "version " << version.value;
}

TEST(LearnerActor, ANewMeetingAbandonsTheStepUnderWay) {
  WarmWorld world;
  ASSERT_EQ(world.learner.tell(world.step(0)), actor::Delivery::kAccepted);
  ASSERT_EQ(world.learner.tell(MeetExchange{}), actor::Delivery::kAccepted);
  world.run();
  EXPECT_TRUE(world.all<messages::StepCommitted>().empty());
  EXPECT_EQ(world.all<messages::LearnerUp>().back().checkpoint, StepId{0});
  world.tell(world.step(0));
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 1u);
}

// What it had answered comes first, then where it is: at rest, at work, or before the first word.
TEST(LearnerActor, AnExchangeThatFollowsHearsTheNewestAnswersAndWhatIsTrained_LE4) {
  World world;
  world.start();
  world.heard.clear();
  world.tell(MeetAgain{});
  EXPECT_EQ(world.all<messages::LearnerUp>().size(), 1u);
  EXPECT_TRUE(world.all<messages::LearnerBack>().empty()) << "it has been told nothing yet";
  world.tell(messages::PublishInitial{});
  world.heard.clear();
  world.tell(MeetAgain{});
  EXPECT_FALSE(world.all<messages::LearnerBack>().at(0).warm_started);
  world.tell(messages::WarmStart{});
  world.heard.clear();
  world.tell(MeetAgain{});
  ASSERT_EQ(world.heard.size(), 3u);
  EXPECT_EQ(std::get<messages::WarmStarted>(world.heard[0]).publication.version, PolicyVersion{0});
  EXPECT_EQ(std::get<messages::CheckpointSaved>(world.heard[1]).step, StepId{0});
  EXPECT_TRUE(std::get<messages::LearnerBack>(world.heard[2]).warm_started);
  world.tell(world.step(0));
  const auto trained = world.all<messages::StepCommitted>();
  world.heard.clear();
  world.tell(MeetAgain{});
  ASSERT_EQ(world.heard.size(), 3u);
  EXPECT_EQ(std::get<messages::CheckpointSaved>(world.heard[0]).step, StepId{0});
  EXPECT_EQ(std::get<messages::StepCommitted>(world.heard[1]).checksum, trained.at(0).checksum);
  EXPECT_EQ(std::get<messages::LearnerBack>(world.heard[2]).step, StepId{1});
  EXPECT_FALSE(std::get<messages::LearnerBack>(world.heard[2]).training);

  ASSERT_EQ(world.learner.tell(world.step(1)), actor::Delivery::kAccepted);
  ASSERT_TRUE(world.executor.step()) << "it reads the payloads and trains";
  world.heard.clear();
  world.tell(MeetAgain{});
  ASSERT_EQ(world.all<messages::LearnerBack>().size(), 1u);
  EXPECT_EQ(world.all<messages::LearnerBack>()[0].training, StepId{1});
  ASSERT_EQ(world.all<messages::StepCommitted>().size(), 2u) << "step 0 again, step 1 in the end";
  EXPECT_EQ(world.all<messages::StepCommitted>()[1].step, StepId{1});
  // A batch that has not come whole is dropped, and is sent again.
  messages::TrainStep part = world.step(2);
  part.groups.resize(1);
  part.more = true;
  world.tell(part);
  world.heard.clear();
  world.tell(MeetAgain{});
  EXPECT_FALSE(world.all<messages::LearnerBack>().at(0).training);
  world.tell(world.step(2));
  EXPECT_EQ(world.all<messages::StepCommitted>().back().step, StepId{2});
}

TEST(LearnerActor, AStepInSeveralMessagesTrainsAsOne) {
  WarmWorld whole, parts;
  whole.tell(whole.step(0));
  messages::TrainStep command = parts.step(0);
  const std::vector<messages::TrainGroup> groups = command.groups;
  for (const messages::TrainGroup& group : groups) {
    EXPECT_TRUE(parts.all<messages::StepCommitted>().empty());
    command.groups = {group};
    command.more = &group != &groups.back();
    parts.tell(command);
  }
  ASSERT_EQ(parts.all<messages::StepCommitted>().size(), 1u);
  EXPECT_EQ(parts.all<messages::StepCommitted>()[0].checksum,
            whole.all<messages::StepCommitted>()[0].checksum);
}

TEST(LearnerActor, PayloadReadsAreRepeatedThenGivenUp) {
  WarmWorld world;
  world.reads_fail = kPayloadAttemptsMax - 1;
  world.tell(world.step(0));
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 1u);
  EXPECT_GT(world.all<messages::StepCommitted>()[0].report.seconds_wait_payload, 0);
  world.reads_fail = kPayloadAttemptsMax;
  world.tell(world.step(1));
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 1u);
  EXPECT_EQ(world.failures, std::vector<std::string>{"the bulk socket is gone"});
  EXPECT_FALSE(world.system.alive("job/learner/0")) << "so that the gang is started again";
}

class UnwritableDisk : public testing::TestWithParam<int> {};  // the errno of its writes
INSTANTIATE_TEST_SUITE_P(Errors, UnwritableDisk, testing::Values(ENOSPC, EROFS, EIO));

TEST_P(UnwritableDisk, HoldsACheckpointUpAndWhatComesAfterIt) {
  WarmWorld world;
  world.tell(world.step(0));
  world.store->full = true;
  world.store->os_error = GetParam();
  const auto tell_later = [&](LearnerActor::Inbox message) {
    EXPECT_EQ(world.learner.tell(std::move(message)), actor::Delivery::kAccepted);
  };
  tell_later(messages::SaveCheckpoint{StepId{1}});
  tell_later(world.step(1));
  world.executor.run_until([] { return false; }, 1h);
  EXPECT_TRUE(world.all<messages::LearnerFailed>().empty());
  EXPECT_EQ(world.all<messages::CheckpointSaved>().size(), 1u) << "of step 0";
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 1u) << "step 1 would change what is saved";
  ASSERT_EQ(world.all<messages::LearnerWaits>().size(), 1u);
  EXPECT_NE(world.all<messages::LearnerWaits>()[0].message.find("No space left on device"),
            std::string::npos);
  world.store->full = false;
  world.executor.run_until([] { return false; }, 1min);
  EXPECT_TRUE(world.store->checkpoints.contains(StepId{1}));
  ASSERT_EQ(world.all<messages::CheckpointSaved>().size(), 2u);
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 2u);
  ASSERT_EQ(world.all<messages::LearnerWaits>().size(), 2u);
  EXPECT_TRUE(world.all<messages::LearnerWaits>()[1].message.empty()) << "it waits no more";
  EXPECT_TRUE(world.system.alive("job/learner/0"));
}

TEST_P(UnwritableDisk, HoldsAPublicationUpAndWhatComesAfterIt) {
  World world;
  world.publish_os_error = GetParam();
  const auto tell_and_wait = [&](LearnerActor::Inbox message) {
    EXPECT_EQ(world.learner.tell(std::move(message)), actor::Delivery::kAccepted);
    world.executor.run_until([] { return false; }, 1h);
  };
  world.start();
  tell_and_wait(messages::PublishInitial{});
  tell_and_wait(MeetAgain{});
  tell_and_wait(messages::PublishInitial{});  // the exchange that follows asks for it too
  EXPECT_TRUE(world.all<messages::Published>().empty());
  world.publish_os_error = 0;
  world.executor.run_until([] { return false; }, 1min);
  EXPECT_EQ(world.all<messages::Published>().size(), 1u);
  world.tell(messages::WarmStart{});

  world.publish_os_error = GetParam();
  tell_and_wait(world.step(0));
  tell_and_wait(MeetAgain{});
  EXPECT_TRUE(world.all<messages::StepCommitted>().empty());
  ASSERT_EQ(world.all<messages::LearnerBack>().size(), 2u);
  EXPECT_EQ(world.all<messages::LearnerBack>()[1].training, StepId{0}) << "it is not told yet";
  EXPECT_FALSE(world.all<messages::LearnerWaits>().back().message.empty());
  tell_and_wait(messages::SaveCheckpoint{StepId{1}});
  world.publish_os_error = 0;
  world.executor.run_until([] { return false; }, 1min);
  ASSERT_EQ(world.all<messages::StepCommitted>().size(), 1u);
  EXPECT_EQ(world.all<messages::StepCommitted>()[0].publication->version, PolicyVersion{1});
  EXPECT_EQ(world.all<messages::CheckpointSaved>().back().step, StepId{1}) << "what was deferred";
  EXPECT_TRUE(world.all<messages::LearnerWaits>().back().message.empty()) << "it waits no more";
  EXPECT_TRUE(world.all<messages::LearnerFailed>().empty());
}

TEST(LearnerActor, ADiskThatCannotBeWrittenForADayFailsTheLearnerWithItsReason) {
  WarmWorld world;
  world.tell(world.step(0));
  world.store->full = true;
  world.store->os_error = ENOSPC;
  EXPECT_EQ(world.learner.tell(messages::SaveCheckpoint{StepId{1}}), actor::Delivery::kAccepted);
  world.executor.run_until([] { return false; }, kRoomWaitMax - 1min);
  EXPECT_TRUE(world.all<messages::LearnerFailed>().empty());
  world.executor.run_until([] { return false; }, 2min);
  ASSERT_EQ(world.all<messages::LearnerFailed>().size(), 1u);
  EXPECT_NE(world.all<messages::LearnerFailed>()[0].message.find("No space left on device"),
            std::string::npos);
  EXPECT_TRUE(world.system.alive("job/learner/0")) << "a restart would meet it again";
}

TEST(LearnerActor, ADiskThatRefusesForGoodFailsTheLearnerWithItsReason) {
  WarmWorld world;
  world.store->full = true;
  world.tell(world.step(0));
  world.tell(messages::SaveCheckpoint{StepId{1}});
  ASSERT_EQ(world.all<messages::LearnerFailed>().size(), 1u);
  EXPECT_NE(world.all<messages::LearnerFailed>()[0].message.find("No space left on device"),
            std::string::npos);
  EXPECT_TRUE(world.system.alive("job/learner/0")) << "a restart would meet it again";
  EXPECT_TRUE(world.store->checkpoints.contains(StepId{0}));
}

TEST(LearnerActor, ADiskThatFailsForAMomentCostsNothing) {
  WarmWorld world;
  world.store->refusals = kSaveAttempts - 1;
  world.tell(world.step(0));
  world.tell(messages::SaveCheckpoint{StepId{1}});
  EXPECT_TRUE(world.all<messages::LearnerFailed>().empty());
  EXPECT_TRUE(world.store->checkpoints.contains(StepId{1}));
}

TEST(LearnerActor, EndsWhereAnotherLearnerHasTakenTheRunOver) {
  WarmWorld world;
  world.store->full = true;
  world.store->code = ErrorCode::kUnauthorised;
  world.tell(messages::SaveCheckpoint{StepId{0}});
  EXPECT_TRUE(world.all<messages::LearnerFailed>().empty());
  EXPECT_FALSE(world.system.alive("job/learner/0")) << "its next incarnation claims the run anew";
}

// What a recorder was asked for, in order; it refuses the first `refusals` batches.
struct Recorded {
  explicit Recorded(World& world) {
    world.recorder = BatchRecorder{
        .keep = [this, &world](
                    const messages::TrainStep& step,
                    const std::vector<std::string>& payloads) -> Result<RecordedBatches> {
          if (refusals > 0) {
            --refusals;
            return Error{.message = "No space left on device"};
          }
          EXPECT_EQ(payloads.size(), step.groups.size());
          words.push_back("keep " + std::to_string(step.step.value) + " at " +
                          std::to_string(world.all<messages::StepCommitted>().size()));
          return RecordedBatches{.bytes = 100 * words.size(), .from = gone_below};
        },
        .sync = [this, &world]() -> Result<void> {
          words.push_back("sync at " + std::to_string(world.store->checkpoints.size()));
          return {};
        }};
  }
  int refusals = 0;
  std::optional<StepId> gone_below;
  std::vector<std::string> words;
};

TEST(LearnerActor, ABatchIsKeptBeforeItsStepAndSyncedBeforeACheckpoint_LE5) {
  World world;
  Recorded recorded(world);
  world.warm_up();
  world.tell(world.step(0));
  world.tell(world.step(1));
  world.tell(messages::SaveCheckpoint{StepId{2}});
  EXPECT_EQ(recorded.words,
            (std::vector<std::string>{"sync at 0", "keep 0 at 0", "keep 1 at 1", "sync at 1"}));
  const auto committed = world.all<messages::StepCommitted>();
  ASSERT_EQ(committed.size(), 2u);
  EXPECT_EQ(committed[0].report.recorded_bytes, 200u);
  EXPECT_EQ(committed[1].report.recorded_bytes, 300u);
  EXPECT_FALSE(committed[1].report.recorded_from);
  recorded.gone_below = StepId{1};
  world.tell(world.step(2));
  EXPECT_EQ(world.all<messages::StepCommitted>().back().report.recorded_from, StepId{1});
}

TEST(LearnerActor, ABatchThatCannotBeKeptIsNotTrained_LE5) {
  World world;
  Recorded recorded(world);
  recorded.refusals = kSaveAttempts - 1;
  world.warm_up();
  world.tell(world.step(0));
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 1u) << "tried again";
  recorded.refusals = kSaveAttempts;
  world.tell(world.step(1));
  EXPECT_EQ(world.all<messages::StepCommitted>().size(), 1u);
  ASSERT_EQ(world.all<messages::LearnerFailed>().size(), 1u);
  EXPECT_EQ(world.all<messages::LearnerFailed>()[0].message, "No space left on device");
}

TEST(LearnerActor, AStepWithoutAFiniteGradientIsCommittedAndItsVersionPublished) {
  World world;
  world.nonfinite = {StepId{1}, StepId{2}, StepId{4}};
  world.warm_up();
  for (std::int64_t s = 0; s < 5; ++s) world.tell(world.step(s));
  EXPECT_TRUE(world.all<messages::LearnerFailed>().empty());
  const auto committed = world.all<messages::StepCommitted>();
  ASSERT_EQ(committed.size(), 5u);
  std::vector<std::uint64_t> in_row, total;
  for (std::size_t s = 0; s < committed.size(); ++s) {
    const messages::StepReport& report = committed[s].report;
    in_row.push_back(report.skipped_in_row);
    total.push_back(report.steps_skipped);
    EXPECT_EQ(std::isfinite(report.grad_norm), report.skipped_in_row == 0);
    EXPECT_EQ(report.tokens_trained, 12u);
    ASSERT_TRUE(committed[s].publication);
    EXPECT_EQ(committed[s].publication->version.value, static_cast<std::int64_t>(s) + 1);
    const std::uint64_t before = s == 0 ? 0 : committed[s - 1].checksum;
    EXPECT_EQ(committed[s].checksum == before, report.skipped_in_row > 0);
  }
  EXPECT_EQ(in_row, (std::vector<std::uint64_t>{0, 1, 2, 0, 1}));
  EXPECT_EQ(total, (std::vector<std::uint64_t>{0, 1, 2, 2, 3}));
}

TEST(LearnerActor, TooManyStepsInARowWithoutAFiniteGradientFailTheLearner) {
  World world;
  world.nonfinite = {StepId{0}, StepId{1}, StepId{2}};
  world.warm_up();
  world.tell(world.step(0));
  world.tell(world.step(1));
  world.tell(messages::SaveCheckpoint{StepId{2}});
  ASSERT_TRUE(world.all<messages::LearnerFailed>().empty());
  world.kill();
  world.heard.clear();
  world.start();  // the checkpoint knows of the two
  world.tell(messages::PublishInitial{});
  world.tell(world.step(2));
  EXPECT_TRUE(world.all<messages::StepCommitted>().empty());
  ASSERT_EQ(world.all<messages::LearnerFailed>().size(), 1u);
  const std::string message = world.all<messages::LearnerFailed>()[0].message;
  EXPECT_NE(message.find("step 3 has a gradient that is not finite"), std::string::npos) << message;
  EXPECT_NE(message.find("learner.max_nonfinite_steps is 2"), std::string::npos) << message;
  EXPECT_TRUE(world.system.alive("job/learner/0")) << "a restart would meet it again";
}

TEST(LearnerActor, AStepOutOfTurnEndsTheActor) {
  WarmWorld world;
  world.tell(world.step(3));
  ASSERT_EQ(world.failures.size(), 1u);
  EXPECT_NE(world.failures[0].find("step 3 while at step 0"), std::string::npos);
}

// A hang in it is found out, unless the publisher itself may wait for longer than the watch does.
TEST(LearnerActor, APublicationIsWorkUnlessItMayWaitForLong) {
  for (const Duration timeout : {Duration{30s}, Duration{1h}}) {
    World world;
    world.publish_timeout = timeout;
    world.start();
    world.tell(messages::PublishInitial{});
    EXPECT_EQ(world.publishes, timeout == 30s ? 1 : 0);
  }
}

}  // namespace
}  // namespace tandem::learner
