// Nodes and GPUs on which actors keep dying, as the controller finds and cordons them by itself.
#include "actors/controller/automatic_cordon.h"

#include <chrono>
#include <csignal>

#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

// Two nodes of four places; a job of six actors, which leave two places free.
class SickNode : public testing::Test {
 protected:
  explicit SickNode(std::int32_t rollouts = 4) {
    world.node("a", 4);
    world.node("b", 4);
    job = world.submit(shape_of(1, rollouts));
    world.all_ready(job);
    for (const auto& [id, node] : world.alive)
      if (id.actor.find("/rollout/") != std::string::npos) ++rollouts_on[node];
    sick = rollouts_on["a"] >= rollouts_on["b"] ? "a" : "b";
    well = sick == "a" ? "b" : "a";
  }
  bool cordoned(const std::string& node) const {
    return world.core.nodes().at(node).cordoned.has_value();
  }
  std::vector<std::string> rollouts_of(const std::string& node) const {
    std::vector<std::string> actors;
    for (const auto& [id, on] : world.alive)
      if (on == node && id.actor.find("/rollout/") != std::string::npos) actors.push_back(id.actor);
    return actors;
  }
  void end(const std::string& actor, int signal) {
    for (const auto& [id, node] : std::map(world.alive))
      if (id.actor == actor) world.end({.id = id, .signal = signal});
  }
  // Every rollout of the node ends once, and is back after its pause, wherever.
  void round(const std::string& node, int signal) {
    for (const std::string& actor : rollouts_of(node)) {
      if (cordoned(node)) return;
      end(actor, signal);
      world.now = world.now + 5s;
      world.must(Tick{});
      world.ready(actor);
    }
  }
  bool announced(const std::string& text) const {
    return std::ranges::any_of(world.announced, [&](const Announce& one) {
      return one.kind == "node" && one.message.find(text) != std::string::npos;
    });
  }

  World world;
  std::string job, sick, well;
  std::map<std::string, int> rollouts_on;
};

TEST_F(SickNode, IsCordonedWithItsReasonAndUncordonedByAPerson_ND1) {
  ASSERT_GE(rollouts_on[sick], 2);
  ASSERT_GE(rollouts_on[well], 1) << "rollouts work elsewhere";
  for (int i = 0; i < 4 && !cordoned(sick); ++i) round(sick, SIGSEGV);
  ASSERT_TRUE(cordoned(sick));
  EXPECT_FALSE(cordoned(well));
  const std::string why = *world.core.nodes().at(sick).cordoned;
  EXPECT_EQ(why.find("automatic: 2 actors died here 3 times within 10 minutes"), 0u) << why;
  EXPECT_NE(why.find("SIGSEGV"), std::string::npos) << why;
  EXPECT_TRUE(announced("cordoned: automatic: "));
  EXPECT_TRUE(world.remembered.cordoned().contains(sick)) << "the next controller knows it";
  world.must(UncordonNode{sick});
  EXPECT_FALSE(cordoned(sick));
  round(sick, SIGSEGV);
  EXPECT_FALSE(cordoned(sick)) << "its deaths are counted anew";
}

TEST_F(SickNode, KillsFromOutsideAreNotTheNodesFault) {
  for (int i = 0; i < 2; ++i) round(sick, SIGKILL);
  EXPECT_FALSE(cordoned(sick));
}

TEST_F(SickNode, AJobThatDiesOnBothNodesIsItsOwnFault_ND2) {
  round(well, SIGSEGV);
  for (int i = 0; i < 2; ++i) round(sick, SIGSEGV);
  EXPECT_FALSE(cordoned(sick));
  EXPECT_FALSE(cordoned(well));
}

// All eight places are taken.
class FullNodes : public SickNode {
 protected:
  FullNodes() : SickNode(6) {}
};

TEST_F(FullNodes, ANodeWithoutWhichNothingHasRoomIsNotCordonedAndThatIsSaid) {
  for (int i = 0; i < 2; ++i) round(sick, SIGSEGV);
  EXPECT_FALSE(cordoned(sick));
  EXPECT_TRUE(announced("is not cordoned, since there is no other room: "));
}

TEST_F(SickNode, IsLiftedWhereAJobWouldStandStillWithoutTheNode) {
  for (int i = 0; i < 4 && !cordoned(sick); ++i) round(sick, SIGSEGV);
  ASSERT_TRUE(cordoned(sick));
  for (const std::string& rollout : rollouts_of(sick)) world.die(rollout);
  world.node_lost(well);
  EXPECT_TRUE(cordoned(sick)) << "nothing wants to start yet";
  world.now = world.now + 70s;  // the pauses before the next starts are over
  world.must(Tick{});
  EXPECT_FALSE(cordoned(sick)) << "it is the only node that is left";
  EXPECT_TRUE(announced("has no room without it"));
}

TEST_F(SickNode, ACordonOfAPersonIsNotLifted) {
  world.must(CordonNode{sick, "a fan is loud"});
  world.node_lost(well);
  EXPECT_TRUE(cordoned(sick));
}

TEST(AutomaticCordon, ASingleMachineIsNeverCordoned) {
  World world;
  world.node("a", 8);
  const std::string job = world.submit(shape_of(1, 3));
  world.all_ready(job);
  for (int i = 0; i < 2; ++i)
    for (const char* rollout : {"/rollout/0", "/rollout/1"}) {
      for (const auto& [id, node] : std::map(world.alive))
        if (id.actor == job + rollout) world.end({.id = id, .signal = SIGSEGV});
      world.now = world.now + 5s;
      world.must(Tick{});
      world.ready(job + rollout);
    }
  EXPECT_FALSE(world.core.nodes().at("a").cordoned);
}

// A node of four GPUs; three rollouts with one each.
class SickGpu : public testing::Test {
 protected:
  void begin(std::int32_t gpus) {
    world.node("a", 16, gpus);
    JobShape shape = gpu_shape_of(1, 3);
    job = world.submit(shape);
    world.all_ready(job);
    sick = gpu_of(0);
  }
  std::int32_t gpu_of(int rollout) {
    return world.record(rollout_name(rollout)).ranks.front().gpus.front();
  }
  std::string rollout_name(int rollout) const {
    return job + "/rollout/" + std::to_string(rollout);
  }
  void crash(int rollout) {
    for (const auto& [id, node] : std::map(world.alive))
      if (id.actor == rollout_name(rollout)) world.end({.id = id, .signal = SIGSEGV});
    world.now = world.now + 10s;
    world.must(Tick{});
    if (world.state_of(rollout_name(rollout)) != ActorState::kQueued)
      world.ready(rollout_name(rollout));
  }
  static std::string name_of(std::int32_t gpu) {
    return "GPU " + std::to_string(gpu) + " (a-" + std::to_string(gpu) + ")";
  }
  const std::optional<std::string>& cordon_of(std::int32_t gpu) const {
    return world.core.nodes().at("a").gpus.at(static_cast<std::size_t>(gpu)).cordoned;
  }
  bool announced(const std::string& text) const {
    return std::ranges::any_of(world.announced, [&](const Announce& one) {
      return one.kind == "node" && one.message.find(text) != std::string::npos;
    });
  }

  World world;
  std::string job;
  std::int32_t sick = 0;
};

TEST_F(SickGpu, IsCordonedAloneAndItsActorMovesToAnotherOne_ND1) {
  begin(4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(gpu_of(0), sick);
    crash(0);
  }
  ASSERT_TRUE(cordon_of(sick));
  EXPECT_EQ(cordon_of(sick)->find("automatic: 1 actor died here 3 times within 10 minutes"), 0u)
      << *cordon_of(sick);
  EXPECT_TRUE(announced(name_of(sick) + " cordoned: automatic: 1 actor"));
  EXPECT_FALSE(world.core.nodes().at("a").cordoned);
  EXPECT_NE(gpu_of(0), sick) << "started on the fourth one";
  EXPECT_EQ(world.state_of(rollout_name(0)), ActorState::kReady);
  EXPECT_EQ(world.remembered.cordoned_gpus().at("a").at("a-" + std::to_string(sick)),
            *cordon_of(sick))
      << "the next controller knows it";
  world.must(UncordonNode{"a"});
  EXPECT_FALSE(cordon_of(sick));
  EXPECT_TRUE(world.remembered.cordoned_gpus().empty());
}

TEST_F(SickGpu, WithoutAnotherOneItIsUsedAndThatIsSaid) {
  begin(3);
  for (int i = 0; i < 3; ++i) crash(0);
  EXPECT_FALSE(cordon_of(sick));
  EXPECT_TRUE(announced(name_of(sick) + " not cordoned, since there is no other"));
  EXPECT_EQ(gpu_of(0), sick);
}

// The sick one is needed once the spare one has gone to another job's actor.
TEST_F(SickGpu, IsLiftedWhereAJobWouldStandStillWithoutIt) {
  begin(4);
  for (int i = 0; i < 3; ++i) crash(0);
  ASSERT_TRUE(cordon_of(sick));
  JobShape second = gpu_shape_of(1);
  const std::string needy = world.submit(second);
  EXPECT_FALSE(cordon_of(sick));
  EXPECT_TRUE(announced("has no room without it"));
  EXPECT_EQ(world.state(needy), JobState::kStarting);
}

// An actor that dies wherever it is proves nothing about GPUs.
TEST_F(SickGpu, IsClearedIfItsActorDiesOnAnotherOneToo_ND3) {
  begin(6);
  for (int i = 0; i < 3; ++i) crash(0);
  ASSERT_TRUE(cordon_of(sick));
  for (int i = 0; i < 4; ++i) crash(0);
  EXPECT_FALSE(cordon_of(sick));
  EXPECT_TRUE(
      announced(name_of(sick) + " may be used again: " + rollout_name(0) + " dies elsewhere too"));
  for (const GpuRecord& gpu : world.core.nodes().at("a").gpus) EXPECT_FALSE(gpu.cordoned);
}

TEST_F(SickGpu, StaysCordonedWhereWhatWaitsNeedsNoGpuOrIsTooLarge) {
  begin(4);
  JobShape large = gpu_shape_of(4);
  const std::string too_large = world.submit(large);
  EXPECT_EQ(world.state(too_large), JobState::kQueued);
  for (int i = 0; i < 3; ++i) crash(0);
  EXPECT_TRUE(cordon_of(sick)) << "what waits anyway does not count";
  world.must(CancelJob{too_large});
  const std::string for_cpus = world.submit(shape_of(5));
  EXPECT_STREQ(world.reason(for_cpus + "/learner/0"), "WaitingForCapacity");
  EXPECT_TRUE(cordon_of(sick));
}

// Nothing was computed there: the node could not start the process.
TEST_F(SickGpu, IsNotAtFaultForAProcessThatDidNotStart) {
  begin(4);
  for (int i = 0; i < 4; ++i) {
    for (const auto& [id, node] : std::map(world.alive))
      if (id.actor == rollout_name(0)) {
        world.alive.erase(id);
        world.must(node::RankSpawnFailed{id, "no room on the disk", true});
      }
    world.now = world.now + 70s;
    world.must(Tick{});
  }
  for (const GpuRecord& gpu : world.core.nodes().at("a").gpus) EXPECT_FALSE(gpu.cordoned);
}

// Two rollouts share it: one of them works there, and the other is to blame.
TEST_F(SickGpu, IsNotAtFaultWhileAnotherOneWorksThere) {
  world.node("a", 16, 3);
  JobShape shape = gpu_shape_of(0.5, 3);
  job = world.submit(shape);
  world.all_ready(job);
  ASSERT_EQ(gpu_of(0), gpu_of(1)) << "packed";
  for (int i = 0; i < 4; ++i) crash(0);
  for (const GpuRecord& gpu : world.core.nodes().at("a").gpus) EXPECT_FALSE(gpu.cordoned);
}

// Two GPUs are cordoned, and one is enough for what waits; then nothing waits for the other.
TEST_F(SickGpu, OnlyTheNodeThatIsNeededIsLifted) {
  begin(4);
  world.node("b", 16, 4);
  for (int i = 0; i < 3; ++i) crash(0);
  ASSERT_TRUE(cordon_of(sick));
  world.must(CordonNode{"b", "automatic: a test"});
  JobShape one = gpu_shape_of(1);
  world.submit(one);
  EXPECT_FALSE(cordon_of(sick)) << "the fourth GPU is taken";
  EXPECT_TRUE(world.core.nodes().at("b").cordoned);
  world.submit(one);
  EXPECT_FALSE(world.core.nodes().at("b").cordoned);
}

// By its uuid: the next agent may list the GPUs in another order.
TEST_F(SickGpu, StaysCordonedUnderTheNextControllerAndAgent) {
  begin(4);
  for (int i = 0; i < 3; ++i) crash(0);
  ASSERT_TRUE(cordon_of(sick));
  world.must(messages::JobEnded{job, messages::JobOutcome::kSucceeded, ""});
  world.obey();
  World after(2, world);
  node::NodeUp up{"a", Incarnation{9}, 16, std::int64_t{1} << 40, 1};
  for (const int i : {3, 2, 1, 0}) up.gpus.push_back({.uuid = "a-" + std::to_string(i)});
  after.must(up);
  for (const GpuRecord& gpu : after.core.nodes().at("a").gpus)
    EXPECT_EQ(gpu.cordoned.has_value(), gpu.device.uuid == "a-" + std::to_string(sick));
}

}  // namespace
}  // namespace tandem::controller
