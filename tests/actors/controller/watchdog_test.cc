#include "actors/controller/watchdog.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/log.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

const bool kSilentLog = (log::mute(), true);

// Keeps what the watchdog tells the controller.
class Told final : public actor::Target<Controller::Inbox> {
 public:
  actor::Delivery post(Controller::Inbox message) override {
    hangs.push_back(std::get<RankHung>(std::move(message)));
    return actor::Delivery::kAccepted;
  }
  std::uint64_t bytes_max() const override { return actor::kBytesUnlimited; }
  Error too_large(const Controller::Inbox&) const override { return {}; }

  std::vector<RankHung> hangs;
};

class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() {
    const auto peers = [this] { return peers_; };
    dog_ = system_.spawn<Watchdog>("watchdog", [this, peers] {
      return std::make_unique<Watchdog>(
          peers, actor::Ref<Controller::Inbox>(ActorId{"controller", {}}, told_));
    });
    EXPECT_EQ(dog_.tell(WatchNow{}), actor::Delivery::kAccepted);
    look();  // at nobody
  }
  // A rank that has trained ten pieces of at most 20 ms, and is still since then.
  link::PeerStatus& rank(const std::string& actor, std::uint64_t incarnation, Duration still) {
    peers_.push_back(
        {.peer = {actor + "/rank-0", Incarnation{incarnation}},
         .hello = {.name = actor + "/rank-0",
                   .incarnation = Incarnation{incarnation},
                   .opaque = actor},
         .progress = {
             .counter = 21, .phase = "train", .pieces = 10, .longest = 20ms, .still = still}});
    return peers_.back();
  }
  // What it tells at its next look.
  std::vector<RankHung> look() {
    told_->hangs.clear();
    executor_.run_until([] { return false; }, kWatchEvery);
    return told_->hangs;
  }

  WorkByActor work() {
    WorkByActor answer;
    const auto keep = [&](Result<WorkByActor> reply) { answer = *std::move(reply); };
    EXPECT_EQ(dog_.tell(actor::Ask<GetWork>{{}, actor::ReplyTo<WorkByActor>(keep)}),
              actor::Delivery::kAccepted);
    executor_.run_until([] { return false; }, Duration{0});
    return answer;
  }

  std::vector<link::PeerStatus> peers_;
  std::shared_ptr<Told> told_ = std::make_shared<Told>();
  actor::SimulatedExecutor executor_{1};
  actor::System system_{executor_, nullptr};
  actor::Ref<Watchdog::Inbox> dog_;
};

TEST_F(WatchdogTest, TellsOfAHangWithItsWorkAndItsMeasure) {
  rank("job/learner/0", 1, 2499ms);
  rank("job/rollout/0", 2, 2500ms);
  const auto hangs = look();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].id, (node::RankId{"job/rollout/0", Incarnation{2}, 0}));
  EXPECT_EQ(hangs[0].silent_s, 2.5);
  EXPECT_EQ(hangs[0].phase, "train");
  EXPECT_EQ(hangs[0].longest_s, 0.02);
  EXPECT_EQ(look().size(), 1u)
      << "again, as long as it is there: the controller may not have heard";
}

TEST_F(WatchdogTest, WorkOfWhichNothingIsKnownAndWhatIsNotHeardAreLeftAlone) {
  rank("job/learner/0", 1, 59s).progress.pieces = 0;
  rank("job/rollout/0", 2, 59s).silent = true;
  rank("job/reward/0", 3, 59s).progress.phase = "idle";
  EXPECT_TRUE(look().empty());
}

TEST_F(WatchdogTest, AHangDoublesTheDeadlineOfThatWorkInThatRoleAlone_HT3) {
  rank("job/rollout/0", 1, 3s);
  EXPECT_EQ(look().size(), 1u);
  peers_.clear();
  rank("job/rollout/1", 2, 3s);
  rank("job/learner/0", 3, 3s);
  const auto hangs = look();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].id.actor, "job/learner/0");
  peers_.clear();
  rank("job/rollout/1", 2, 5s);
  EXPECT_EQ(look().size(), 1u);
}

TEST_F(WatchdogTest, ALoadIsMeasuredByThoseOfItsRoleBefore) {
  const auto begin = [&](const std::string& actor, std::uint64_t incarnation,
                         const char* phase) -> link::ProgressReport& {
    link::ProgressReport& told = rank(actor, incarnation, 0ms).progress;
    told = {.counter = 2, .phase = phase, .since = executor_.now()};
    return told;
  };
  begin("job/learner/0", 1, "load");
  look();
  EXPECT_EQ(work().at("job/learner/0").hung_at - executor_.now(), scheduler::kHungAfterInLoad);
  executor_.run_until([] { return false; }, 39s);
  peers_.at(0).progress.phase = "train";
  look();
  peers_.clear();
  begin("job/learner/0", 2, "load");
  begin("job/rollout/0", 3, "load");
  look();
  const WorkByActor found = work();
  const Duration longest = found.at("job/learner/0").hung_at - executor_.now();
  EXPECT_GE(longest, 10 * 39s);
  EXPECT_LE(longest, 10 * 41s);
  EXPECT_EQ(found.at("job/rollout/0").hung_at - executor_.now(), scheduler::kHungAfterInLoad)
      << "nothing is known of rollouts";
}

TEST_F(WatchdogTest, TellsWhenTheWorkOfAnActorWouldCountAsHung) {
  rank("job/learner/0", 4, 1500ms);
  rank("job/learner/0", 4, 500ms);   // another rank of it
  rank("job/learner/0", 3, 2400ms);  // its incarnation before
  rank("job/rollout/0", 5, 1s).progress.phase = "idle";
  rank("job/rollout/1", 6, Duration::min());
  EXPECT_TRUE(look().empty());
  const WorkByActor found = work();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("job/learner/0").incarnation, Incarnation{4});
  EXPECT_EQ(found.at("job/learner/0").phase, "train");
  EXPECT_EQ(found.at("job/learner/0").hung_at - executor_.now(), 1s);
  EXPECT_EQ(found.at("job/rollout/1").hung_at - executor_.now(), 2500ms);
  peers_.clear();
  look();
  EXPECT_TRUE(work().empty()) << "what has no link is not at work";
}

}  // namespace
}  // namespace tandem::controller
