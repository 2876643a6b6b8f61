// Ranks whose link is lost while their controller lives.
#include "actors/controller/ranks.h"

#include <chrono>

#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;
using scheduler::ActorState;

// A rank whose link is lost, and which does not end by itself.
class Unlinked : public testing::Test {
 protected:
  Unlinked() {
    world.node("a", 6);
    JobShape shape = shape_of(1);
    add_program(shape, "counter", 1);
    job = world.submit(shape);
    world.all_ready(job);
  }
  node::RankId lose_link(const std::string& role) {
    const std::string actor = job + "/" + role + "/0";
    const node::RankId id{actor, world.record(actor).incarnation, 0};
    world.must(RankHung{id, 0});
    EXPECT_TRUE(world.told_to_end.empty()) << "its end, which may be under way, says why";
    return id;
  }

  World world;
  std::string job;
};

TEST_F(Unlinked, ItsProcessMayEndBeforeItIsEnded) {
  const node::RankId id = lose_link("rollout");
  world.now = world.now + 2s;
  world.must(Tick{});
  world.die(id);
  EXPECT_EQ(world.state_of(id.actor), ActorState::kBackoff);
  EXPECT_TRUE(world.told_to_end.empty());
}

TEST_F(Unlinked, ItIsEndedIfItLivesOn) {
  for (const char* role : {"rollout", "counter"}) {
    SCOPED_TRACE(role);
    const node::RankId id = lose_link(role);
    world.now = world.now + 4s;
    world.must(Tick{});
    EXPECT_EQ(world.told_to_end, std::set{id});
    world.obey();
  }
}

// Messages of its lost link are missing, which only a new exchange asks for again.
TEST_F(Unlinked, ARankThatTrainsIsEndedWhenItComesBackAndAProgramIsNot) {
  world.must(RankConnected{lose_link("counter")});
  EXPECT_TRUE(world.told_to_end.empty());
  const node::RankId id = lose_link("rollout");
  world.must(RankConnected{id});
  EXPECT_EQ(world.told_to_end, std::set{id});
}

}  // namespace
}  // namespace tandem::controller
