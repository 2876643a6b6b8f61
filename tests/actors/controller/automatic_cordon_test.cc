// Nodes on which actors keep dying, as the controller finds and cordons them by itself.
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
  EXPECT_TRUE(announced("is not cordoned, since no other node has room: "));
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
  EXPECT_TRUE(announced("is needed: a job has no room without it"));
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

}  // namespace
}  // namespace tandem::controller
