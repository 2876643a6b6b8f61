// Placement of ranks on nodes by CPUs, GPUs and memory: the choice of nodes, exact fractions, and
// the words for a shape that waits or never fits.
#include "scheduler/fleet/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/base/rng.h"
#include "scheduler/fleet/fits_ever.h"

namespace tandem::scheduler {
namespace {

NodeCapacity node(std::string name, double free, double total) {
  return {std::move(name), resources({.cpus = total}), resources({.cpus = free})};
}
NodeCapacity node(std::string name, double cpus) { return node(std::move(name), cpus, cpus); }

// A node of 8 CPUs and of GPUs of which these shares are free.
NodeCapacity gpu_node(std::string name, std::vector<double> gpus_free) {
  NodeCapacity room = node(std::move(name), 8);
  for (const double free : gpus_free) {
    room.total = room.total + resources({.gpus = 1});
    room.free = room.free + resources({.gpus = free});
    room.gpus_free_milli.push_back(resources({.gpus = free}).gpu_milli);
  }
  return room;
}

Gang gang(std::string actor, double cpus, std::int32_t ranks = 1) {
  return {std::move(actor), resources({.cpus = cpus}), ranks};
}
Gang gpu_gang(double gpus, std::int32_t ranks = 1, Strategy strategy = Strategy::kPack) {
  return {"j/rollout/0", resources({.cpus = 0.5, .gpus = gpus}), ranks, strategy};
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
using Placed = std::variant<std::vector<Assignment>, Reason>;

Nodes nodes_of(const Placed& placed, std::size_t i) {
  Nodes nodes;
  for (const RankPlace& rank : std::get<0>(placed).at(i).ranks) nodes.push_back(rank.node);
  return nodes;
}

// "a:0 a:1,2 b:": node and GPUs of each rank of the first gang.
std::string places(const Placed& placed) {
  std::string all;
  for (const RankPlace& rank : std::get<0>(placed).at(0).ranks) {
    all += (all.empty() ? "" : " ") + rank.node + ":";
    for (std::size_t i = 0; i < rank.gpus.size(); ++i)
      all += (i == 0 ? "" : ",") + std::to_string(rank.gpus[i]);
  }
  return all;
}
std::string places(const std::vector<NodeCapacity>& nodes, const Gang& gang) {
  return places(place(nodes, std::span(&gang, 1)));
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

TEST(Placement, ACordonedNodeTakesNothingAndIsNoReasonToRefuse) {  // PL-5
  NodeCapacity large = node("large", 8);
  large.cordoned = true;
  const NodeCapacity nodes[] = {large, node("small", 1)};
  const Gang fits_small[] = {gang("j/rollout/0", 0)}, fits_large[] = {gang("j/rollout/0", 4)};
  const auto placed = place(nodes, fits_small);
  ASSERT_EQ(placed.index(), 0u);
  EXPECT_EQ(std::get<0>(placed).front().ranks.front().node, "small");
  const auto waits = place(nodes, fits_large);
  ASSERT_EQ(waits.index(), 1u);
  const Reason& why = std::get<Reason>(waits);
  ASSERT_TRUE(std::holds_alternative<WaitingForCapacity>(why)) << message(why, {});
  EXPECT_NE(message(why, {}).find("cordoned: large"), std::string::npos) << message(why, {});
}

TEST(Placement, ACordonedGpuIsNoReasonToRefuseEither) {  // PL-5
  NodeCapacity two = node("two", 4);
  two.total.gpu_milli = 2000;
  two.free.gpu_milli = 1000;
  two.gpus_free_milli = {0, 1000};
  two.gpus_cordoned = {0};
  Gang rollout = gang("j/rollout/0", 1);
  rollout.per_rank.gpu_milli = 1000;
  const std::vector one{rollout}, both{rollout, rollout};
  const auto placed = place({{two}}, one);
  ASSERT_EQ(placed.index(), 0u);
  EXPECT_EQ(std::get<0>(placed).front().ranks.front().gpus, std::vector<std::int32_t>{1});
  const auto waits = place({{two}}, both);
  ASSERT_EQ(waits.index(), 1u);
  EXPECT_EQ(message(std::get<Reason>(waits), {}),
            "needs 2.0 GPUs; free: 4.0 CPUs, 1.0 GPUs; cordoned: two's GPU 0");
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

TEST(PlacementOfGpus, WholeOnesAreNobodyElses) {
  const std::vector nodes{gpu_node("a", {0.5, 1, 1})};
  EXPECT_EQ(places(nodes, gpu_gang(1, 2)), "a:1 a:2");
  EXPECT_EQ(places(nodes, gpu_gang(2)), "a:1,2");
  const std::vector gangs{gpu_gang(1, 3)};
  EXPECT_EQ(message(std::get<Reason>(place(nodes, gangs)), Time{}),
            "needs 3.0 GPUs; free: 8.0 CPUs, 2.0 GPUs");
}

TEST(PlacementOfGpus, AShareLiesOnOneGpu) {
  const std::vector nodes{gpu_node("a", {0.4, 0.5, 1})};
  EXPECT_EQ(places(nodes, gpu_gang(0.4)), "a:0");  // where the least is left
  EXPECT_EQ(places(nodes, gpu_gang(0.5, 3)), "a:1 a:2 a:2");
  EXPECT_EQ(places(nodes, gpu_gang(0.4, 1, Strategy::kSpread)), "a:2");
  const std::vector gangs{gpu_gang(0.6, 2)};  // 1.9 are free, but in pieces too small for two
  EXPECT_EQ(message(std::get<Reason>(place(nodes, gangs)), Time{}),
            "needs 1.2 GPUs; free: 8.0 CPUs, 0.6 GPUs");
}

TEST(PlacementOfGpus, PackFillsAndSpreadSpreads) {
  const std::vector nodes{gpu_node("a", {1, 1, 1}), gpu_node("b", {1, 1})};
  EXPECT_EQ(places(nodes, gpu_gang(1, 2)), "b:0 b:1");
  EXPECT_EQ(places(nodes, gpu_gang(1, 3, Strategy::kSpread)), "a:0 b:0 a:1");
  EXPECT_EQ(places(nodes, gpu_gang(0.5, 2)), "b:0 b:0");
  EXPECT_EQ(places(nodes, gpu_gang(0.5, 2, Strategy::kSpread)), "a:0 a:1");
}

TEST(PlacementOfGpus, WhoNeedsNoneKeepsOffThem) {
  const std::vector nodes{gpu_node("a", {1}), node("b", 8)};
  EXPECT_EQ(places(nodes, gang("j/reward/0", 1)), "b:");
}

TEST(FitsEver, SaysWhatWasFoundInsteadOfAGpu) {
  NodeCapacity bare = node("a", 4);
  bare.gpus_absent = "no GPU: no NVIDIA driver";
  RoleDemand rollout = role("rollout", 0.5, 1);
  rollout.per_rank = resources({.cpus = 0.5, .gpus = 1});
  rollout.gpus_key = "pools.rollout.gpus_per_actor";
  const auto verdict = fits_ever(std::vector{bare}, std::vector{rollout});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(verdict.error().message,
            "the job can never be placed: job/rollout/0 needs 1.0 GPUs per rank; the largest node "
            "has 4.0 CPUs; a has: no GPU: no NVIDIA driver");
  EXPECT_EQ(verdict.error().help, "with pools.rollout.gpus_per_actor=0.0 it would fit");
}

TEST(FitsEver, NamesTheGpusThatCannotBeUsed) {
  NodeCapacity half = gpu_node("a", {1});
  half.gpus_unusable = {"GPU 1: GPU is lost"};
  RoleDemand rollout = role("rollout", 0.5, 1);
  rollout.per_rank = resources({.cpus = 0.5, .gpus = 2});
  const auto wide = fits_ever(std::vector{half}, std::vector{rollout});
  ASSERT_FALSE(wide);
  EXPECT_TRUE(wide.error().message.ends_with("; a cannot use GPU 1: GPU is lost"))
      << wide.error().message;
  rollout = role("rollout", 0.5, 2);
  rollout.per_rank = resources({.cpus = 0.5, .gpus = 1});
  const auto many = fits_ever(std::vector{half}, std::vector{rollout});
  ASSERT_FALSE(many);
  EXPECT_TRUE(many.error().message.ends_with("; a cannot use GPU 1: GPU is lost"))
      << many.error().message;
  EXPECT_TRUE(fits_ever(std::vector{half}, std::vector{role("rollout", 99, 1)})
                  .error()
                  .message.find("lost") == std::string::npos);
}

TEST(FitsEver, NamesANodeWhoseGpusAreAllUnusableWhateverTheOthersHave) {
  NodeCapacity lost = node("a", 4);
  lost.gpus_unusable = {"GPU 0: GPU is lost"};
  lost.gpus_absent = "no usable GPU: GPU 0: GPU is lost";
  NodeCapacity bare = node("b", 4);
  bare.gpus_absent = "no GPU: no NVIDIA driver";
  RoleDemand rollout = role("rollout", 0.5, 1);
  rollout.per_rank = resources({.cpus = 0.5, .gpus = 2});
  const auto found = [&](const std::vector<NodeCapacity>& nodes) {
    const std::string message = fits_ever(nodes, std::vector{rollout}).error().message;
    return message.substr(std::min(message.find(';', message.find(';') + 1), message.size()));
  };
  EXPECT_EQ(found({lost}), "; a cannot use GPU 0: GPU is lost");
  EXPECT_EQ(found({gpu_node("c", {1}), lost}), "; a cannot use GPU 0: GPU is lost");
  EXPECT_EQ(found({bare, lost}),
            "; a cannot use GPU 0: GPU is lost; b has: no GPU: no NVIDIA driver");
}

TEST(FitsEver, TwoHalvesOfDifferentGpusAreNoWhole) {
  RoleDemand rollout = role("rollout", 0.5, 3);
  rollout.per_rank = resources({.cpus = 0.5, .gpus = 0.6});
  const std::vector nodes{gpu_node("a", {0.1, 0.1})};  // shares that are taken now do not count
  const auto verdict = fits_ever(nodes, std::vector{rollout});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().help, "with rollout.replicas=2 it would fit");
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

TEST(Replicas, AreReadWholeAndWithinTheRange) {
  EXPECT_EQ(replicas_of("rollout", "1").value(), 1);
  EXPECT_EQ(replicas_of("rollout", "4096").value(), kReplicasMax);
  for (const char* count : {"", "0", "-1", "4097", "4294967297", "99999999999999999999", "2.0",
                            "1e2", " 1", "1 ", "\"1\"", "many"}) {
    const auto refused = replicas_of("rollout", count);
    ASSERT_FALSE(refused.has_value()) << count;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(refused.error().message,
              "cannot scale rollout to " + std::string(count) + ": a role has 1 to 4096 actors");
  }
}

// The nearest count is the one that a search over all counts finds, and is found without that
// search.
TEST(FitsEverProperty, TheNearestCountIsTheGreatestThatFits) {
  int refusals = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    std::vector<NodeCapacity> nodes;
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n)
      nodes.push_back(node("n" + std::to_string(n), 1 + static_cast<double>(rng.below(4))));
    const std::vector roles{role("rollout", 0.5 + 0.5 * static_cast<double>(rng.below(3)),
                                 static_cast<std::int32_t>(2 + rng.below(60))),
                            role("learner", 0.5 + 0.5 * static_cast<double>(rng.below(2)), 1)};
    const auto fits_with = [&](std::int32_t count) {
      std::vector<RoleDemand> changed = roles;
      changed[0].replicas = count;
      return place(nodes, gangs_of(changed, "job")).index() == 0;
    };
    std::int32_t most = roles[0].replicas;
    while (most > 0 && !fits_with(most)) --most;
    const auto verdict = fits_ever(nodes, roles);
    EXPECT_EQ(verdict.has_value(), most == roles[0].replicas);
    if (verdict || most == 0) continue;
    ++refusals;
    EXPECT_EQ(verdict.error().help,
              "with rollout.replicas=" + std::to_string(most) + " it would fit");
  }
  EXPECT_GT(refusals, 100);
}

// Counts the ranks one by one, the plain way.
std::int64_t ranks_by_counting(const NodeCapacity& node, const Resources& shape) {
  std::int64_t by_gpus = shape.gpu_milli == 0 ? 1 << 20 : 0, whole = 0;
  for (const std::int64_t free : node.gpus_free_milli) {
    whole += free == kWholeGpu ? 1 : 0;
    for (std::int64_t left = free;
         shape.gpu_milli > 0 && shape.gpu_milli < kWholeGpu && left >= shape.gpu_milli;
         left -= shape.gpu_milli)
      ++by_gpus;
  }
  if (shape.gpu_milli >= kWholeGpu) by_gpus = whole / (shape.gpu_milli / kWholeGpu);
  return std::min(by_gpus, node.free.cpu_milli / shape.cpu_milli);
}

// PL-1, PL-2, PL-3 on random fleets; and one shape alone is placed whenever the counts allow it.
TEST(PlacementProperty, NeverOvercommitsAndPlacesAllOrNone) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    const auto milli = [&rng](std::uint64_t most) {
      return static_cast<std::int64_t>(rng.below(most + 1));
    };
    std::vector<NodeCapacity> nodes;
    for (std::uint64_t n = 1 + rng.below(4); n > 0; --n) {
      const Resources total{milli(4000), kWholeGpu * milli(4), 0};
      NodeCapacity room{
          "n" + std::to_string(n), total, {milli(4000) % (total.cpu_milli + 1), 0, 0}};
      for (std::int64_t gpu = 0; gpu < total.gpu_milli / kWholeGpu; ++gpu) {
        room.gpus_free_milli.push_back(rng.below(3) == 0 ? milli(kWholeGpu) : kWholeGpu);
        room.free.gpu_milli += room.gpus_free_milli.back();
      }
      nodes.push_back(std::move(room));
    }
    const auto gpu_need = [&] { return rng.below(3) == 0 ? milli(900) : kWholeGpu * milli(2); };
    const bool one_shape = rng.below(2) == 0;
    const Resources shape{100 + milli(900), gpu_need(), 0};
    std::vector<Gang> gangs;
    for (std::uint64_t n = 1 + rng.below(5); n > 0; --n) {
      const Resources own{100 + milli(900), gpu_need(), 0};
      gangs.push_back({"g" + std::to_string(n), one_shape ? shape : own,
                       static_cast<std::int32_t>(1 + rng.below(3)),
                       rng.below(2) == 0 ? Strategy::kPack : Strategy::kSpread});
    }
    FreeRoom room(nodes);  // place_next() is place() of one gang after another
    for (const Gang& next : gangs) {
      const std::vector<NodeCapacity> before = room.all();
      const auto alone = place(before, std::span(&next, 1));
      const auto taken = place_next(room, next);
      ASSERT_EQ(taken.index(), alone.index());
      if (const auto* all = std::get_if<0>(&alone)) {
        EXPECT_EQ(std::get<0>(taken).ranks, all->front().ranks);
      } else {
        EXPECT_EQ(message(std::get<1>(taken), {}), message(std::get<1>(alone), {}));
        const std::vector<NodeCapacity> after = room.all();
        for (std::size_t n = 0; n < after.size(); ++n) EXPECT_EQ(after[n].free, before[n].free);
      }
    }
    const auto placed = place(nodes, gangs);
    if (const auto* assigned = std::get_if<0>(&placed)) {
      std::map<std::string, Resources> used;
      std::map<std::string, std::map<std::int32_t, std::int64_t>> gpus_used;
      for (std::size_t i = 0; i < gangs.size(); ++i) {
        ASSERT_EQ(std::ssize((*assigned)[i].ranks), gangs[i].ranks);
        const std::int64_t need = gangs[i].per_rank.gpu_milli;
        for (const RankPlace& rank : (*assigned)[i].ranks) {
          used[rank.node] = used[rank.node] + gangs[i].per_rank;
          ASSERT_EQ(std::ssize(rank.gpus), (need + kWholeGpu - 1) / kWholeGpu);
          for (const std::int32_t gpu : rank.gpus)
            gpus_used[rank.node][gpu] += std::min(need, kWholeGpu);
        }
      }
      for (const NodeCapacity& n : nodes) {
        EXPECT_TRUE(fits(used[n.name], n.free));
        for (const auto& [gpu, milli_used] : gpus_used[n.name])
          EXPECT_LE(milli_used, n.gpus_free_milli.at(static_cast<std::size_t>(gpu)));
      }
    } else if (one_shape) {
      std::int64_t possible = 0, wanted = 0;
      for (const NodeCapacity& n : nodes) possible += ranks_by_counting(n, shape);
      for (const Gang& g : gangs) wanted += g.ranks;
      EXPECT_LT(possible, wanted);
    }
  }
}

}  // namespace
}  // namespace tandem::scheduler
