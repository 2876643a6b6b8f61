#include "runtime/node/cpu_wait.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace tandem::node {
namespace {

TEST(CpuWait, IsTheSumOfAllThreadsAndZeroWhereTheKernelSaysNothing) {
  std::string pattern = testing::TempDir() + "cpu_wait.XXXXXX";
  const std::filesystem::path process = ::mkdtemp(pattern.data());
  EXPECT_EQ(cpu_wait(process), Duration{0});
  for (const char* thread : {"7", "8", "9"})
    std::filesystem::create_directories(process / "task" / thread);
  std::ofstream(process / "task/7/schedstat") << "1000 250 3\n";
  std::ofstream(process / "task/8/schedstat") << "5000 50 1\n";
  EXPECT_EQ(cpu_wait(process), Duration{300}) << "thread 9 has just ended";
  std::filesystem::remove_all(process);
}

}  // namespace
}  // namespace tandem::node
