// Jobs of a cluster whose nodes are still on their way (actors/controller/queue.h).
#include "actors/controller/queue.h"

#include <gtest/gtest.h>

#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

TEST(GrowingCluster, AJobStartsWithTheRolloutsThatFit) {
  World world(1, {}, {.grows = true});
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1, 4));
  EXPECT_EQ(world.state(job), JobState::kStarting);
  EXPECT_EQ(world.alive.size(), 4u);
  EXPECT_EQ(world.state_of(job + "/rollout/1"), ActorState::kStarting);
  EXPECT_EQ(world.state_of(job + "/rollout/2"), ActorState::kQueued);
  EXPECT_STREQ(world.reason(job + "/rollout/2"), "WaitingForCapacity");
  world.all_ready(job);
  world.node("b", 1);
  EXPECT_EQ(world.state_of(job + "/rollout/2"), ActorState::kStarting);
  world.node("c", 1);
  EXPECT_EQ(world.state_of(job + "/rollout/3"), ActorState::kStarting);
  const std::string next = world.submit(shape_of(1, 4));  // nothing is left of the room
  EXPECT_EQ(world.state(next), JobState::kQueued);

  const SubmitJob large{shape_of(5), "large", "runs/large"}, wide{shape_of(1, 4), "wide", "runs/w"};
  EXPECT_FALSE(world.take(large).has_value()) << "not even with one rollout";
  World whole;
  whole.node("a", 4);
  EXPECT_FALSE(whole.take(wide).has_value());
}

}  // namespace
}  // namespace tandem::controller
