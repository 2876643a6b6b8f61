// The controller and the memory of nodes: what a job reserves, when it waits for memory, and when
// it is refused, at submit and by `scale`.
//
// Tests actors/controller/controller_core.h.
#include "actors/controller/demands.h"
#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

// Ranks of 100 MiB; each rollout takes pages of 1 MiB as well, for half of the largest node
// together.
JobShape planned_shape(std::int32_t rollouts = 1) {
  JobShape shape = shape_of(0.1, rollouts);
  for (const messages::Role& role : messages::kTrainingRoles)
    shape.memory[role].rows = {{"weights", 100 * kMib}};
  shape.memory[messages::Role::kRollout].paged =
      scheduler::PagedMemory{.name = "KV pages",
                             .page_bytes = kMib,
                             .pages_min = 4,
                             .pages_max = 400,
                             .share = 0.5,
                             .sharers = rollouts,
                             .share_key = "rollout.gpu_memory_utilization"};
  return shape;
}

void add_node(World& world, const std::string& name, std::int64_t mebibytes) {
  world.node(name, 16, 0, {}, mebibytes * kMib);
}

TEST(ControllerMemory, AJobReservesItsPlanAndARolloutIsToldItsPages) {
  World world;
  add_node(world, "a", 1000);
  const std::string job = world.submit(planned_shape());
  EXPECT_EQ(world.core.nodes().at("a").leased.memory_bytes, (100 + 400 + 100 + 100) * kMib);
  world.all_ready(job);
  for (const messages::StartRank& start : world.started)
    EXPECT_EQ(start.pages, start.role == messages::Role::kRollout ? 400 : 0) << start.actor;
  world.must(messages::JobEnded{job, messages::JobOutcome::kSucceeded, ""});
  world.obey();
  EXPECT_EQ(world.core.nodes().at("a").leased.memory_bytes, 0);
}

TEST(ControllerMemory, PagesAreSettledByTheLargestNodeWhenTheJobStarts) {
  World world;
  const std::string job = world.submit(planned_shape());  // no node is known yet
  EXPECT_EQ(planned_pages(world.core.jobs().at(job).shape, messages::Role::kRollout), 400);
  world.nodes["a"] = {Incarnation{1},
                      scheduler::resources({.cpus = 16, .memory_bytes = 600 * kMib})};
  add_node(world, "a", 600);
  EXPECT_EQ(world.state(job), JobState::kStarting);
  EXPECT_EQ(planned_pages(world.core.jobs().at(job).shape, messages::Role::kRollout), 300);
  add_node(world, "b", 2000);
  EXPECT_EQ(planned_pages(world.core.jobs().at(job).shape, messages::Role::kRollout), 300)
      << "it runs";
}

TEST(ControllerMemory, WhatCanNeverFitIsRefusedWithTheTableAndAChange) {
  World world;
  add_node(world, "a", 320);
  const auto refused = world.take(SubmitJob{planned_shape(), "job-1", "runs/job-1"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code(refused.error().code), 2);
  const std::string text = render(refused.error());
  for (const char* part :
       {"the job can never be placed: ", "memory of each rank:", "rollout  weights", "KV pages",
        "160 MiB", "help: with rollout.gpu_memory_utilization=0.06 it would fit"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_TRUE(world.core.jobs().empty());
}

TEST(ControllerMemory, AnOptionOfThePlanIsProposed) {
  World world;
  add_node(world, "a", 290);
  JobShape shape = planned_shape();
  shape.memory[messages::Role::kRollout].paged.reset();
  scheduler::MemoryDemand less{.rows = {{"weights", 50 * kMib}}, .paged = {}};
  shape.memory_options = {{"learner.enable_gradient_checkpointing=true", {{"learner", less}}}};
  const auto refused = world.take(SubmitJob{shape, "job-1", "runs/job-1"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().help.starts_with(
      "with learner.enable_gradient_checkpointing=true it would fit"))
      << refused.error().help;
  shape.memory.at(messages::Role::kLearner) = less;
  const std::string job = world.submit(shape);
  EXPECT_TRUE(world.core.jobs().at(job).shape.memory_options.empty()) << "no refusal needs them";
}

TEST(ControllerMemory, WhatDoesNotFitNowWaitsUntilMemoryIsGivenBack) {
  World world;
  add_node(world, "a", 1000);
  const std::string first = world.submit(planned_shape());
  const std::string second = world.submit(planned_shape());
  EXPECT_EQ(world.state(second), JobState::kQueued);
  EXPECT_STREQ(world.reason(second + "/learner/0"), "WaitingForCapacity");
  EXPECT_EQ(scheduler::message(world.core.jobs().at(second).status.reason, world.now),
            "needs 700 MiB; free: 15.7 CPUs, 300 MiB");
  world.must(messages::JobEnded{first, messages::JobOutcome::kSucceeded, ""});
  world.obey();
  EXPECT_EQ(world.state(second), JobState::kStarting);
}

TEST(ControllerMemory, ScaleIsRefusedWithTheCountThatFitsAndWaitsWhereOthersAreInTheWay) {
  World world;
  add_node(world, "a", 1000);
  JobShape shape = planned_shape();
  shape.memory[messages::Role::kRollout].paged->pages_max = 50;
  const std::string job = world.submit(shape);
  const auto refused =
      world.take(ScaleRole{job, messages::Role::kRollout, 6});  // 6 of 150, and 200
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_TRUE(refused.error().help.starts_with("with rollout.replicas=5 it would fit"))
      << refused.error().help;
  const std::string other = world.submit(shape);
  EXPECT_EQ(world.core.nodes().at("a").leased.memory_bytes, 700 * kMib);
  world.must(ScaleRole{job, messages::Role::kRollout, 4});
  EXPECT_EQ(world.core.nodes().at("a").leased.memory_bytes, 1000 * kMib);
  EXPECT_STREQ(world.reason(job + "/rollout/3"), "WaitingForCapacity");
}

TEST(ControllerMemory, ANodeThatAnnouncesNoneTakesAJobOfAnySize) {
  World world;
  node::NodeUp up{"a", Incarnation{1}, 16, 0, 1};
  ASSERT_TRUE(world.core.step(up, world.now));
  EXPECT_TRUE(world.core.accepted(planned_shape(3)));
}

}  // namespace
}  // namespace tandem::controller
