// The meter reads a /proc of files that the test writes, so every figure is known.
#include "runtime/node/process_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace tandem::node {
namespace {

using namespace std::chrono_literals;

class UsageTest : public testing::Test {
 protected:
  UsageTest() {
    std::string pattern = testing::TempDir() + "usage.XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
  }
  ~UsageTest() override { std::filesystem::remove_all(proc_); }

  // A process with one thread, which started `children`.
  void process(int pid, int user, int system, int pages, const std::string& children = "",
               char state = 'S') {
    const auto folder = proc_ / std::to_string(pid);
    std::filesystem::create_directories(folder / "task" / std::to_string(pid));
    std::ofstream(folder / "stat")
        << pid << " (a (strange) name) " << state << " 1 1 1 0 -1 0 1 2 3 4 " << user << " "
        << system << " 7 7 20 0 1 0 99 123456 " << pages << " 18446744073709551615 0 0\n";
    std::ofstream(folder / "task" / std::to_string(pid) / "children") << children;
  }

  std::filesystem::path proc_;
  const long ticks_ = ::sysconf(_SC_CLK_TCK);  // per second
  const long page_ = ::sysconf(_SC_PAGESIZE);
};

TEST_F(UsageTest, SumsAProcessAndItsDescendants) {
  const auto second = static_cast<int>(ticks_);
  process(10, 5 * second, second, 100, "11 ");
  process(11, 0, 0, 20, "12");
  process(12, 0, 0, 3);
  UsageMeter meter(10, proc_);
  EXPECT_FALSE(meter.sample(Time{} + 1s)) << "the first sample only starts the count";
  process(10, 6 * second, second, 200, "11 ");
  process(11, second / 2, 0, 20, "12");
  const auto usage = meter.sample(Time{} + 3s);
  ASSERT_TRUE(usage);
  EXPECT_DOUBLE_EQ(usage->cpu_percent, 75);  // 1.5 s of CPU time within 2 s
  EXPECT_EQ(usage->memory_bytes, 223 * page_);
}

TEST_F(UsageTest, AProcessThatASignalHasStoppedSaysForHowLong_PU2) {
  UsageMeter meter(10, proc_);
  const auto stopped_at = [&](Duration at, char state, char state_of_child = 'S') {
    process(10, 0, 0, 1, "11", state);
    process(11, 0, 0, 1, "", state_of_child);
    const auto usage = meter.sample(Time{} + at);
    return usage ? usage->stopped : Duration{-1};
  };
  stopped_at(1s, 'S');
  EXPECT_EQ(stopped_at(2s, 'T'), 0s) << "it may have been stopped just now";
  EXPECT_EQ(stopped_at(3s, 'T'), 1s);
  EXPECT_EQ(stopped_at(4s, 'T'), 2s);
  EXPECT_EQ(stopped_at(5s, 'S'), 0s) << "it goes on";
  EXPECT_EQ(stopped_at(6s, 'S', 'T'), 0s) << "a program that it runs is no concern here";
  EXPECT_EQ(stopped_at(7s, 't'), 0s);
  EXPECT_EQ(stopped_at(8s, 't'), 0s) << "a debugger holds it";
  stopped_at(9s, 'T');
  EXPECT_EQ(stopped_at(60s, 'T'), kSampleMax) << "whoever looks was stopped as well";
}

TEST_F(UsageTest, EndedProcessesNeverMakeItNegative) {  // PU-1
  const auto second = static_cast<int>(ticks_);
  process(10, second, 0, 1, "11");
  process(11, 50 * second, 0, 1);
  UsageMeter meter(10, proc_);
  (void)meter.sample(Time{} + 1s);
  process(10, 2 * second, 0, 1);  // 11 has ended
  EXPECT_DOUBLE_EQ(meter.sample(Time{} + 2s)->cpu_percent, 100);
  process(10, second, 0, 1);  // another process has its pid now
  EXPECT_DOUBLE_EQ(meter.sample(Time{} + 3s)->cpu_percent, 0);
  std::filesystem::remove_all(proc_ / "10");
  EXPECT_FALSE(meter.sample(Time{} + 4s));
}

TEST_F(UsageTest, ReadsTheRealProc) {
  UsageMeter meter(::getpid());
  EXPECT_FALSE(meter.sample(Time{} + 1s));
  const auto usage = meter.sample(Time{} + 2s);
  ASSERT_TRUE(usage);
  EXPECT_GT(usage->memory_bytes, 1 << 20);
}

}  // namespace
}  // namespace tandem::node
