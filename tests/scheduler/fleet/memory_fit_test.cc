#include "scheduler/fleet/memory_fit.h"

#include <gtest/gtest.h>

#include "scheduler/fleet/fits_ever.h"
#include "scheduler/fleet/placement.h"

namespace tandem::scheduler {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

NodeCapacity node_of(std::string name, std::int64_t mebibytes, double cpus = 8) {
  const Resources all = resources({.cpus = cpus, .memory_bytes = mebibytes * kMiB});
  return {std::move(name), all, all};
}

MemoryDemand demand_of(std::int64_t mebibytes) {
  return {.rows = {{"weights", mebibytes * kMiB}}, .paged = {}};
}

// A rollout of 10 MiB, and up to 100 pages of 1 MiB of which it needs 2; a learner of 40 MiB.
std::vector<RoleDemand> job_of(std::int32_t rollouts, double share = 1) {
  RoleDemand rollout{.role = "rollout",
                     .replicas = rollouts,
                     .per_rank = resources({.cpus = 0.5}),
                     .replicas_key = "rollout.replicas",
                     .ranks_key = "",
                     .cpus_key = "",
                     .gpus_key = "",
                     .memory = demand_of(10)};
  rollout.memory.paged = PagedMemory{.name = "KV pages",
                                     .page_bytes = kMiB,
                                     .pages_min = 2,
                                     .pages_max = 100,
                                     .share = share,
                                     .sharers = rollouts,
                                     .share_key = "rollout.gpu_memory_utilization"};
  RoleDemand learner{.role = "learner",
                     .per_rank = resources({.cpus = 0.5}),
                     .replicas_key = "",
                     .ranks_key = "learner.ranks",
                     .cpus_key = "",
                     .gpus_key = "",
                     .memory = demand_of(40)};
  return {rollout, learner};
}

Result<void> fits(std::vector<NodeCapacity> nodes, std::vector<RoleDemand> roles,
                  const std::vector<MemoryOption>& options = {}) {
  settle_memory(roles, nodes);
  return fits_ever(nodes, roles, options);
}

std::string help(const Result<void>& refused) {
  EXPECT_FALSE(refused.has_value());
  if (refused) return "";
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  return refused.error().help;
}

TEST(MemoryFit, AJobThatFitsIsPlacedByItsMemory) {
  EXPECT_TRUE(fits({node_of("a", 160)}, job_of(1)).has_value()) << "10 + 100 + 40 of 160";
  std::vector<RoleDemand> roles = job_of(1);
  settle_memory(roles, std::vector{node_of("a", 160)});
  EXPECT_EQ(roles[0].per_rank.memory_bytes, 110 * kMiB);
  EXPECT_EQ(roles[1].per_rank.memory_bytes, 40 * kMiB);
}

TEST(MemoryFit, ANodeThatAnnouncesNoMemoryTakesAnyAmount) {
  EXPECT_TRUE(fits({node_of("a", 0)}, job_of(3)).has_value());
  EXPECT_TRUE(fits({node_of("a", 0), node_of("b", 50)}, job_of(3)).has_value());
}

TEST(MemoryFit, ASmallerShareIsTheNearestChange) {
  const auto refused = fits({node_of("a", 100)}, job_of(1));
  EXPECT_EQ(help(refused),
            "with rollout.gpu_memory_utilization=0.5 it would fit, or with a node that offers "
            "150 MiB");
  const std::string& said = refused.error().message;
  EXPECT_TRUE(said.starts_with("the job can never be placed: ")) << said;
  EXPECT_NE(said.find("\nmemory of each rank:\nrollout  weights"), std::string::npos) << said;
  EXPECT_NE(said.find("KV pages  100 MiB"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("150 MiB")) << said;
}

TEST(MemoryFit, AnOptionComesBeforeFewerActorsAndAfterTheShare) {
  std::vector<RoleDemand> roles = job_of(1);
  roles[0].memory.paged.reset();
  roles[0].replicas = 2;
  const MemoryOption option{"learner.enable_gradient_checkpointing=true",
                            {{"learner", demand_of(20)}}};
  const auto refused = fits({node_of("a", 50)}, roles, {option});
  EXPECT_TRUE(help(refused).starts_with("with learner.enable_gradient_checkpointing=true it"))
      << help(refused);
  const auto fewer = fits({node_of("a", 50)}, roles);
  EXPECT_TRUE(help(fewer).starts_with("with rollout.replicas=1 it would fit")) << help(fewer);
}

TEST(MemoryFit, AnOptionAndAShareTogether) {
  const MemoryOption option{"learner.max_token_len=512", {{"learner", demand_of(20)}}};
  EXPECT_TRUE(help(fits({node_of("a", 40)}, job_of(1), {option}))
                  .starts_with("with learner.max_token_len=512 and "
                               "rollout.gpu_memory_utilization=0.27 it would fit"))
      << "ten whole pages";
}

TEST(MemoryFit, WhereNothingHelpsTheNodeThatItTakesIsNamed) {
  const auto refused = fits({node_of("a", 30), node_of("b", 20)}, job_of(1, 0.5));
  EXPECT_EQ(help(refused),
            "no smaller setting is enough: it needs a node that offers 99 MiB "
            "(`tandem node --memory`), or a smaller model")
      << "10 and 40, and half of it for whole pages";
  EXPECT_NE(refused.error().message.find("job/learner/0 needs 40 MiB per rank"), std::string::npos)
      << refused.error().message;
}

TEST(MemoryFit, AShareTooSmallForOneSequenceIsRefusedWithTheOneThatIsEnough) {
  const auto refused = fits({node_of("a", 1000)}, job_of(1, 0.001));
  EXPECT_EQ(help(refused), "with rollout.gpu_memory_utilization=0.002 it would fit");
  EXPECT_EQ(refused.error().where, "rollout.gpu_memory_utilization");
  EXPECT_NE(refused.error().message.find("needs 2 MiB of KV pages"), std::string::npos)
      << refused.error().message;
}

TEST(MemoryFit, WhatDoesNotFitNowWaits) {
  std::vector nodes{node_of("a", 100)};
  nodes[0].free.memory_bytes = 30 * kMiB;
  const Gang gang{.actor = "j/learner/0",
                  .per_rank = resources({.cpus = 0.5, .memory_bytes = 40 * kMiB})};
  const auto placed = place(nodes, std::span(&gang, 1));
  ASSERT_EQ(placed.index(), 1u);
  const Reason& why = std::get<Reason>(placed);
  EXPECT_TRUE(std::holds_alternative<WaitingForCapacity>(why));
  EXPECT_EQ(message(why, Time{}), "needs 40 MiB; free: 8.0 CPUs, 30 MiB");
}

TEST(MemoryFit, CpusThatAreShortAreNoMatterOfMemory) {
  std::vector<RoleDemand> roles = job_of(1);
  roles[1].per_rank.cpu_milli = 100'000;
  const auto refused = fits({node_of("a", 1000)}, roles);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message.find("memory of each rank"), std::string::npos);
}

}  // namespace
}  // namespace tandem::scheduler
