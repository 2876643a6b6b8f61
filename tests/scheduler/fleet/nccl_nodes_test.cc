#include "scheduler/fleet/nccl_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/rng.h"
#include "scheduler/fleet/fits_ever.h"
#include "scheduler/fleet/placement.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

NodeCapacity gpu_host(std::string name, int gpus, NcclFound nccl) {
  const Resources all = resources({.cpus = 8, .gpus = static_cast<double>(gpus)});
  return {.name = std::move(name),
          .total = all,
          .free = all,
          .gpus_free_milli = std::vector<std::int64_t>(static_cast<std::size_t>(gpus), kWholeGpu),
          .nccl = std::move(nccl)};
}

std::vector<RoleDemand> broadcast_roles(double learner, double rollout, std::int32_t replicas) {
  return {{.role = "learner",
           .per_rank = resources({.cpus = 0.5, .gpus = learner}),
           .nccl = true,
           .gpus_key = "pools.learner.gpus_per_actor"},
          {.role = "rollout",
           .replicas = replicas,
           .per_rank = resources({.cpus = 0.5, .gpus = rollout}),
           .nccl = true,
           .gpus_key = "pools.rollout.gpus_per_actor"},
          {.role = "reward", .per_rank = resources({.cpus = 0.5})}};
}

Gang nccl_gang(double gpus, std::int32_t ranks, std::string version = "") {
  return {.actor = "j/learner/0",
          .per_rank = resources({.cpus = 0.5, .gpus = gpus}),
          .ranks = ranks,
          .nccl = true,
          .nccl_version = std::move(version)};
}

void expect_refused(const Result<void>& verdict, const std::string& message,
                    const std::string& help) {
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(verdict.error().message, "the job can never be placed: " + message);
  EXPECT_NE(verdict.error().help.find(help), std::string::npos) << verdict.error().help;
}

TEST(NcclNodes, AJobThatNeedsNcclFitsWhereAllThatItNeedsHaveOneVersion) {
  const std::vector nodes{gpu_host("a", 2, {.version = "2.28.9"}),
                          gpu_host("b", 1, {.version = "2.28.9"}), gpu_host("cpus", 0, {})};
  EXPECT_TRUE(fits_ever(nodes, broadcast_roles(1, 1, 2)));
  EXPECT_TRUE(fits_ever({}, broadcast_roles(1, 1, 2))) << "nothing is known yet";
}

TEST(NcclNodes, ARefusalNamesTheNodeAndWhyItHasNone) {
  const std::vector nodes{gpu_host("a", 2, {.absent = "no NCCL library: not found"})};
  expect_refused(fits_ever(nodes, broadcast_roles(1, 1, 1)),
                 "it needs NCCL; a: no NCCL library: not found", "install NCCL 2.19");
  std::vector roles = broadcast_roles(1, 1, 1);
  for (RoleDemand& role : roles) role.nccl = false;
  EXPECT_TRUE(fits_ever(nodes, roles));
}

TEST(NcclNodes, ANodeWithoutNcclIsLeftOutWhereTheOthersSuffice) {
  const std::vector nodes{gpu_host("a", 2, {.absent = "no NCCL library"}),
                          gpu_host("b", 2, {.version = "2.28.9"})};
  EXPECT_TRUE(fits_ever(nodes, broadcast_roles(1, 1, 1)));
  expect_refused(fits_ever(nodes, broadcast_roles(1, 1, 2)),
                 "it needs NCCL; a: no NCCL library; b has NCCL 2.28.9", "install NCCL");
}

TEST(NcclNodes, UnequalVersionsAreRefusedWithTheirNodes) {
  const std::vector nodes{gpu_host("a", 2, {.version = "2.28.9"}),
                          gpu_host("b", 2, {.version = "2.30.3"})};
  expect_refused(fits_ever(nodes, broadcast_roles(1, 1, 1)),
                 "its nodes have several versions of NCCL: a has NCCL 2.28.9; b has NCCL 2.30.3",
                 "the same version");
}

TEST(NcclNodes, SharesOfAGpuNeedAnNcclThatAllowsThem) {
  std::vector nodes{gpu_host("a", 1, {.version = "2.30.3"})};
  expect_refused(fits_ever(nodes, broadcast_roles(0.5, 0.5, 1)),
                 "with shares of a GPU two ranks of one NCCL communicator could meet on it, which "
                 "NCCL allows since 2.30.3 and where it is told to; a has NCCL 2.30.3",
                 "set pools.learner.gpus_per_actor=1 and pools.rollout.gpus_per_actor=1, or on "
                 "every node NCCL_MULTI_RANK_GPU_ENABLE=1");
  nodes[0].nccl.shares_gpus = true;
  EXPECT_TRUE(fits_ever(nodes, broadcast_roles(0.5, 0.5, 1)));
}

TEST(NcclNodes, WantOfRoomIsSaidBeforeWantOfNccl) {
  const std::vector nodes{gpu_host("a", 1, {.absent = "no NCCL library"})};
  const auto verdict = fits_ever(nodes, broadcast_roles(1, 1, 1));
  ASSERT_FALSE(verdict);
  EXPECT_NE(verdict.error().message.find("it needs 2.0 GPUs"), std::string::npos)
      << verdict.error().message;
}

TEST(NcclNodes, AGangThatFindsNoNcclSaysSo) {
  FreeRoom room(std::vector{gpu_host("a", 1, {.version = "2.30.3"})});
  const Gang gang = nccl_gang(1, 1, "2.28.9");
  const auto placed = place_next(room, gang);
  ASSERT_EQ(placed.index(), 1u);
  EXPECT_EQ(message(std::get<Reason>(placed), Time{}),
            "j/learner/0 needs NCCL 2.28.9, which the job's others have; a has NCCL 2.30.3");
}

// Random nodes and jobs: whatever is placed keeps to PL-4, and a gang of one rank that some
// node can hold is placed.
TEST(NcclNodes, PL4RanksOfACommunicatorHaveNcclOfOneVersion) {
  for_seeds(300, [](std::uint64_t seed) {
    Rng rng(seed);
    const std::vector<std::string> versions{"", "2.28.9", "2.30.3"};
    std::vector<NodeCapacity> nodes;
    for (int i = 0; i < 4; ++i) {
      const std::string& version = versions[rng.below(3)];
      nodes.push_back(
          gpu_host(std::string(1, static_cast<char>('a' + i)), static_cast<int>(rng.below(4)),
                   {.version = version, .shares_gpus = version == "2.30.3" && rng.below(2) == 0}));
    }
    const double gpus = rng.below(2) == 0 ? 0.5 : 1;
    const std::vector gangs{nccl_gang(gpus, 1 + static_cast<std::int32_t>(rng.below(3))),
                            nccl_gang(1, 1)};
    const auto placed = place(nodes, gangs);
    if (placed.index() != 0) {
      EXPECT_FALSE(place(nodes, std::span(gangs).last(1)).index() != 0 &&
                   std::ranges::any_of(nodes, [](const NodeCapacity& node) {
                     return !node.nccl.version.empty() && node.total.gpu_milli > 0;
                   }));
      return;
    }
    std::string version;
    for (std::size_t i = 0; i < gangs.size(); ++i)
      for (const RankPlace& rank : std::get<0>(placed)[i].ranks) {
        const auto node = std::ranges::find(nodes, rank.node, &NodeCapacity::name);
        ASSERT_FALSE(node->nccl.version.empty());
        if (version.empty()) version = node->nccl.version;
        EXPECT_EQ(node->nccl.version, version);
        EXPECT_TRUE(gangs[i].per_rank.gpu_milli == kWholeGpu || node->nccl.shares_gpus);
      }
  });
}

}  // namespace
}  // namespace tandem::scheduler
