#include "actors/controller/node_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

// Ranks take and leave GPUs, and agents find other ones each time: a rank's index stays that of its
// GPU, what is not found is gone, and the list does not grow with its age.
TEST(NodeRecord, AnIndexStaysThatOfItsGpuWhileARankHoldsIt) {
  for_seeds(300, [](std::uint64_t seed) {
    Rng rng(seed);
    NodeRecord node;
    std::map<std::size_t, std::string> held;  // by index, the uuid
    std::size_t most = 0;
    for (int round = 0; round < 30; ++round) {
      std::vector<node::Gpu> found;
      for (int i = 0; i < 6; ++i)
        if (rng.below(3) > 0) {
          const std::uint64_t kind = rng.below(4) == 0 ? 2 + rng.below(1000) : rng.below(2);
          found.push_back({.uuid = "GPU-" + std::to_string(kind) + std::to_string(i)});
        }
      renew_gpus(node, found);
      most = std::max(most, held.size() + found.size());
      std::size_t present = 0;
      for (const GpuRecord& gpu : node.gpus) {
        const bool is_found = std::ranges::any_of(
            found, [&](const node::Gpu& one) { return one.uuid == gpu.device.uuid; });
        EXPECT_EQ(gpu.gone, !is_found);
        EXPECT_EQ(gpu.offered_milli(), is_found ? gpu.free_milli : 0);
        present += is_found ? 1 : 0;
      }
      EXPECT_EQ(present, found.size());
      for (const auto& [index, uuid] : held) ASSERT_EQ(node.gpus.at(index).device.uuid, uuid);
      EXPECT_LE(node.gpus.size(), most);
      for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        GpuRecord& gpu = node.gpus[i];
        if (held.contains(i) ? rng.below(2) > 0 : gpu.offered_milli() == 0 || rng.below(2) > 0)
          continue;
        const bool takes = !held.contains(i);
        gpu.free_milli = takes ? 500 : scheduler::kWholeGpu;
        if (takes)
          held[i] = gpu.device.uuid;
        else
          held.erase(i);
      }
    }
  });
}

TEST(NodeRecord, AGpuThatOnlyTheJournalKnowsIsGoneUntilItIsFound) {
  NodeRecord node;
  EXPECT_EQ(index_of_gpu(node, "GPU-1"), 0);
  EXPECT_EQ(index_of_gpu(node, "GPU-2"), 1);
  EXPECT_EQ(index_of_gpu(node, "GPU-1"), 0);
  EXPECT_TRUE(node.gpus[1].gone);
  node.gpus[1].free_milli = 0;
  renew_gpus(node, {{.uuid = "GPU-2"}, {.uuid = "GPU-3"}});
  EXPECT_EQ(node.gpus[1].device.uuid, "GPU-2");
  EXPECT_EQ(node.gpus[0].device.uuid, "GPU-3") << "nobody holds the one that is gone";
  EXPECT_FALSE(node.gpus[0].gone || node.gpus[1].gone);
}

}  // namespace
}  // namespace tandem::controller
