#include "scheduler/fleet/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "runtime/base/rng.h"

namespace tandem::scheduler {
namespace {

NodeCapacity node(std::string name, double free, double total) {
  return {std::move(name), resources({.cpus = total}), resources({.cpus = free})};
}
NodeCapacity node(std::string name, double cpus) { return node(std::move(name), cpus, cpus); }

Gang gang(std::string actor, double cpus, std::int32_t ranks = 1) {
  return {std::move(actor), resources({.cpus = cpus}), ranks};
}

RoleDemand role(std::string name, double cpus, std::int32_t replicas) {
  return {.role = name,
          .replicas = replicas,
          .per_rank = resources({.cpus = cpus}),
          .replicas_key = name + ".replicas",
          .ranks_key = "",
          .cpus_key = "pools." + name + ".cpus_per_actor"};
}

using Nodes = std::vector<std::string>;

Nodes nodes_of(const std::variant<std::vector<Assignment>, Reason>& placed, std::size_t i) {
  return std::get<0>(placed).at(i).nodes;
}

TEST(Placement, PacksAGangOnTheNodeThatItFillsBest) {
  const std::vector nodes{node("a", 4), node("b", 2), node("c", 1)};
  const std::vector gangs{gang("j/learner/0", 1, 2)};
  EXPECT_EQ(nodes_of(place(nodes, gangs), 0), (Nodes{"b", "b"}));
}

TEST(Placement, SpreadsOverAsFewNodesAsItMust) {
  const std::vector nodes{node("a", 1), node("b", 2), node("c", 1)};
  const std::vector gangs{gang("j/learner/0", 1, 3)};
  EXPECT_EQ(nodes_of(place(nodes, gangs), 0), (Nodes{"b", "b", "a"}));
}

TEST(Placement, FractionsAddUpExactly) {
  const std::vector nodes{node("a", 1)};
  const std::vector<Gang> ten(10, gang("j/reward/0", 0.1));
  EXPECT_EQ(place(nodes, ten).index(), 0u);
  const std::vector<Gang> eleven(11, gang("j/reward/0", 0.1));
  EXPECT_EQ(place(nodes, eleven).index(), 1u);
}

TEST(Placement, WaitsWithTheArithmetic) {
  const std::vector nodes{node("a", 0.5, 2), node("b", 1, 2)};
  const std::vector gangs{gang("j/learner/0", 1, 2)};
  const auto placed = place(nodes, gangs);
  const Reason& why = std::get<Reason>(placed);
  EXPECT_STREQ(reason_name(why), "WaitingForCapacity");
  EXPECT_EQ(message(why, Time{}), "needs 2.0 CPUs; free: 1.5 CPUs");
}

TEST(Placement, AShapeThatNoNodeHasIsInfeasible) {
  const std::vector nodes{node("a", 0, 2)};
  const std::vector gangs{gang("j/rollout/0", 3)};
  const auto placed = place(nodes, gangs);
  const Reason& why = std::get<Reason>(placed);
  EXPECT_STREQ(reason_name(why), "InfeasibleShape");
  EXPECT_EQ(message(why, Time{}),
            "j/rollout/0 needs 3.0 CPUs per rank; the largest node has 2.0 CPUs");
}

TEST(FitsEver, AcceptsWhatFitsAnEmptyFleet) {
  const std::vector nodes{node("a", 0, 2)};
  const std::vector roles{role("rollout", 0.5, 2), role("learner", 0.5, 1), role("reward", 0.1, 5)};
  EXPECT_TRUE(fits_ever(nodes, roles).has_value());
  EXPECT_TRUE(fits_ever({}, roles).has_value());
}

TEST(FitsEver, RefusesWithTheNearestCount) {
  const std::vector nodes{node("a", 2)};
  const std::vector roles{role("rollout", 1.5, 2), role("learner", 0.5, 1)};
  const auto verdict = fits_ever(nodes, roles);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(
      verdict.error().message,
      "the job can never be placed: it needs 3.5 CPUs (rollout 2 × 1.5 CPUs + learner 1 × 0.5 "
      "CPUs); all nodes together have 2.0 CPUs, the largest 2.0 CPUs");
  EXPECT_EQ(verdict.error().help, "with rollout.replicas=1 it would fit");
}

TEST(FitsEver, RefusesWithTheNearestShape) {
  const std::vector nodes{node("a", 2)};
  const std::vector roles{role("rollout", 3, 1)};
  const auto verdict = fits_ever(nodes, roles);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().help, "with pools.rollout.cpus_per_actor=2.0 it would fit");
  const std::vector hopeless{role("rollout", 3, 1), role("learner", 2, 1)};
  EXPECT_EQ(fits_ever(nodes, hopeless).error().help, "add a node, or ask for less in pools.*");
}

// PL-1, PL-2 on random fleets; and one shape alone is placed whenever the counts allow it.
TEST(PlacementProperty, NeverOvercommitsAndPlacesAllOrNone) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    const auto milli = [&rng](std::uint64_t most) {
      return static_cast<std::int64_t>(rng.below(most + 1));
    };
    std::vector<NodeCapacity> nodes;
    for (std::uint64_t n = 1 + rng.below(4); n > 0; --n) {
      const Resources total{milli(4000), 1000 * milli(4), 0};
      nodes.push_back({"n" + std::to_string(n),
                       total,
                       {milli(4000) % (total.cpu_milli + 1), total.gpu_milli, 0}});
    }
    const bool one_shape = rng.below(2) == 0;
    const Resources shape{100 + milli(900), 1000 * milli(1), 0};
    std::vector<Gang> gangs;
    for (std::uint64_t n = 1 + rng.below(5); n > 0; --n) {
      const Resources own{100 + milli(900), 1000 * milli(1), 0};
      gangs.push_back({"g" + std::to_string(n), one_shape ? shape : own,
                       static_cast<std::int32_t>(1 + rng.below(3))});
    }
    const auto placed = place(nodes, gangs);
    if (const auto* assigned = std::get_if<0>(&placed)) {
      std::map<std::string, Resources> used;
      for (std::size_t i = 0; i < gangs.size(); ++i) {
        ASSERT_EQ(std::ssize((*assigned)[i].nodes), gangs[i].ranks);
        for (const std::string& name : (*assigned)[i].nodes)
          used[name] = used[name] + gangs[i].per_rank;
      }
      for (const NodeCapacity& n : nodes) EXPECT_TRUE(fits(used[n.name], n.free));
    } else if (one_shape) {
      std::int64_t room = 0, wanted = 0;
      for (const NodeCapacity& n : nodes)
        for (Resources left = n.free; fits(shape, left); left = left - shape) ++room;
      for (const Gang& g : gangs) wanted += g.ranks;
      EXPECT_LT(room, wanted);
    }
  }
}

}  // namespace
}  // namespace tandem::scheduler
