#include "scheduler/fleet/free_room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "runtime/base/rng.h"
#include "scheduler/fleet/nccl_nodes.h"
#include "scheduler/fleet/node_room.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

// The best node by a look at all of them: what FR-1 names.
const NodeCapacity* by_a_look_at_all(const std::vector<NodeCapacity>& nodes, const Gang& gang,
                                     std::int64_t wanted) {
  const std::int64_t order = gang.strategy == Strategy::kPack ? 1 : -1;
  const auto ranks = [&](const NodeCapacity& node) {
    return nccl_allows(gang, node) ? ranks_that_fit(gang.per_rank, node, wanted) : 0;
  };
  const auto best = std::ranges::min_element(nodes, {}, [&](const NodeCapacity& node) {
    return std::tuple(-ranks(node), order * node.free.gpu_milli, order * node.free.cpu_milli,
                      order * node.free.memory_bytes, std::string_view(node.name));
  });
  return best == nodes.end() || ranks(*best) == 0 ? nullptr : &*best;
}

NodeCapacity random_node(const std::string& name, Rng& rng) {
  const auto amount = [&](std::uint64_t kinds) {
    return static_cast<std::int64_t>(rng.below(kinds)) * 500;
  };
  NodeCapacity node{.name = name, .total = {4000, 0, rng.below(8) == 0 ? 0 : 4000}};
  for (std::uint64_t gpus = rng.below(4); gpus > 0; --gpus)
    node.gpus_free_milli.push_back(amount(3));
  node.total.gpu_milli = std::ssize(node.gpus_free_milli) * kWholeGpu;
  node.free = {amount(9), 0, amount(9)};
  for (std::size_t i = 0; i < node.gpus_free_milli.size(); ++i) {
    if (rng.below(4) == 0) {
      node.gpus_cordoned.push_back(static_cast<std::int32_t>(i));
      node.gpus_free_milli[i] = 0;
    }
    node.free.gpu_milli += node.gpus_free_milli[i];
  }
  if (rng.below(3) == 0) node.nccl = {.version = rng.below(2) == 0 ? "2.28.9" : "2.30.3"};
  if (rng.below(8) == 0) {
    node.cordoned = true;
    node.free = {};
    std::ranges::fill(node.gpus_free_milli, 0);
  }
  return node;
}

Gang random_gang(Rng& rng) {
  const auto need = [&] { return static_cast<std::int64_t>(rng.below(4)) * 500; };
  Gang gang{"job/role/0", {need(), need(), need()}, 1};
  gang.strategy = rng.below(2) == 0 ? Strategy::kPack : Strategy::kSpread;
  gang.nccl = rng.below(4) == 0;
  if (gang.nccl) gang.nccl_version = "2.30.3";
  return gang;
}

TEST(FreeRoom, TheBestNodeIsThatOfALookAtAll) {  // FR-1
  int found = 0, looked = 0;
  for_seeds(3000, [&](std::uint64_t seed) {
    Rng rng(seed);
    std::vector<NodeCapacity> nodes;
    for (std::uint64_t n = 1 + rng.below(12); n > 0; --n)
      nodes.push_back(random_node("n" + std::to_string(n), rng));
    const FreeRoom room(nodes);
    for (int i = 0; i < 10; ++i) {
      const Gang gang = random_gang(rng);
      const std::int64_t wanted =
          gang.strategy == Strategy::kSpread ? 1 : 1 + static_cast<std::int64_t>(rng.below(4));
      const NodeCapacity* const expected = by_a_look_at_all(nodes, gang, wanted);
      const NodeCapacity* const best = room.best(gang, wanted);
      ASSERT_EQ(best ? best->name : "", expected ? expected->name : "");
      found += best != nullptr;
      ++looked;
    }
  });
  EXPECT_GT(3 * found, looked);
}

TEST(FreeRoom, SumsAndSetsAreThoseOfACount) {  // FR-2
  for_seeds(300, [](std::uint64_t seed) {
    Rng rng(seed);
    FreeRoom room;
    std::map<std::string, NodeCapacity> nodes;
    for (int i = 0; i < 60; ++i) {
      const std::string name = "n" + std::to_string(rng.below(10));
      if (rng.below(4) == 0) {
        room.erase(name);
        nodes.erase(name);
      } else {
        nodes[name] = random_node(name, rng);
        room.set(nodes[name]);
      }
      if (const auto some = nodes.begin(); some != nodes.end() && !some->second.cordoned) {
        const Gang gang = random_gang(rng);
        room.take(some->first, {}, gang.per_rank);
        if (rng.below(2) == 0)
          room.give(some->first, {}, gang.per_rank);
        else
          some->second.free = some->second.free - gang.per_rank;
      }
      std::vector<NodeCapacity> all;
      for (const auto& [key, node] : nodes) all.push_back(node);
      EXPECT_EQ(room.free(), sum(all, &NodeCapacity::free));
      EXPECT_EQ(room.cordoned(), cordoned(all));
      const Gang gang = random_gang(rng);
      const std::vector<NodeCapacity> empty = emptied(all);
      EXPECT_EQ(room.fits_empty(gang.per_rank),
                std::ranges::any_of(empty, [&](const NodeCapacity& node) {
                  return ranks_that_fit(gang.per_rank, node, 1) == 1;
                }));
    }
  });
}

// One rank more on full nodes, on equal ones, and where the CPUs or the memory are short.
TEST(FreeRoom, AFewNodesAreLookedAt) {
  for (const Strategy strategy : {Strategy::kPack, Strategy::kSpread})
    for (const Resources& left :
         {Resources{0, 0, 4000}, Resources{4000, 0, 0}, Resources{0, 0, 0}}) {
      FreeRoom room;
      for (int n = 0; n < 10'000; ++n)
        room.set({.name = "n" + std::to_string(n), .total = {4000, 0, 4000}, .free = left});
      room.set({.name = "roomy", .total = {4000, 0, 4000}, .free = {1000, 0, 1000}});
      const NodeCapacity* const best = room.best({"job/role/0", {1000, 0, 1000}, 1, strategy}, 1);
      ASSERT_NE(best, nullptr);
      EXPECT_EQ(best->name, "roomy");
      EXPECT_EQ(room.best({"job/role/0", {2000, 0, 2000}, 1, strategy}, 1), nullptr);
      EXPECT_LE(room.looked_at(), 4);
    }
}

}  // namespace
}  // namespace tandem::scheduler
