#include "actors/main/this_node.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tandem::app {
namespace {

class ThisNode : public testing::Test {
 protected:
  ThisNode() { ::setenv("TANDEM_NCCL_LIBRARY", TANDEM_FAKE_NCCL, 1); }
  ~ThisNode() override {
    for (const char* name :
         {"TANDEM_NCCL_LIBRARY", "TANDEM_FAKE_NCCL_VERSION", "NCCL_MULTI_RANK_GPU_ENABLE"})
      ::unsetenv(name);
  }
};

TEST_F(ThisNode, SaysWhichNcclItHas) {
  const node::NodeNccl found = find_nccl();
  EXPECT_EQ(found.version, 22809);
  EXPECT_EQ(found.path, TANDEM_FAKE_NCCL);
  EXPECT_FALSE(found.shares_gpus);
  EXPECT_EQ(found.absent, "");
}

TEST_F(ThisNode, SharesGpusWhereNcclCanAndIsToldTo) {
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  EXPECT_FALSE(find_nccl().shares_gpus) << "2.28.9 cannot";
  ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1);
  EXPECT_TRUE(find_nccl().shares_gpus);
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "0", 1);
  EXPECT_FALSE(find_nccl().shares_gpus);
}

TEST_F(ThisNode, SaysWhyItHasNone) {
  ::setenv("TANDEM_NCCL_LIBRARY", ("/nowhere/" + std::string(2 * node::kNcclTextMax, 'x')).c_str(),
           1);
  const node::NodeNccl found = find_nccl();
  EXPECT_EQ(found.version, 0);
  EXPECT_EQ(found.path, "");
  EXPECT_TRUE(found.absent.starts_with("no NCCL library: /nowhere/xxx")) << found.absent;
  EXPECT_LE(found.absent.size(), node::kNcclTextMax) << "the controller takes no more";
}

TEST_F(ThisNode, LooksForNoneWithoutGpus) {
  const auto node = describe_this_node(Incarnation{1});
  ASSERT_TRUE(node);
  if (!node->gpus.empty()) GTEST_SKIP() << "this machine has GPUs";
  EXPECT_EQ(node->nccl.version, 0);
  EXPECT_EQ(node->nccl.absent, "");
}

TEST_F(ThisNode, OffersNoMoreMemoryThanItIsToldAndThanTheMachineLeaves) {
  const auto machine = offered_node(Incarnation{1}, {});
  ASSERT_TRUE(machine);
  EXPECT_GT(machine->memory_bytes, 0);
  const auto less = offered_node(Incarnation{1}, {.cpus = 0.5, .memory_bytes = 1 << 20});
  ASSERT_TRUE(less);
  EXPECT_EQ(less->memory_bytes, 1 << 20);
  EXPECT_EQ(less->cpus, 0.5);
  const std::int64_t more = std::int64_t{1} << 60;
  const auto most = offered_node(Incarnation{1}, {.memory_bytes = more});
  ASSERT_TRUE(most);
  EXPECT_LT(most->memory_bytes, more);
}

}  // namespace
}  // namespace tandem::app
