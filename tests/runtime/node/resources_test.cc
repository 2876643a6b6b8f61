#include "runtime/node/resources.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/base/file.h"

namespace tandem::node {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

// A machine made of files, with 8 GiB.
class ResourcesTest : public testing::Test {
 protected:
  ResourcesTest() {
    std::string pattern = testing::TempDir() + "resources.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    put("meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n");
    put("cgroup", "");
  }
  ~ResourcesTest() override { std::filesystem::remove_all(directory_); }

  void put(const std::filesystem::path& name, std::string_view text) const {
    std::filesystem::create_directories((directory_ / name).parent_path());
    ASSERT_TRUE(write_file(directory_ / name, std::as_bytes(std::span(text))));
  }
  MachineResources read() const {
    return read_machine_resources({.memory_info = directory_ / "meminfo",
                                   .own_cgroups = directory_ / "cgroup",
                                   .cgroup_mount = directory_ / "fs"})
        .value();
  }

  std::filesystem::path directory_;
};

TEST_F(ResourcesTest, WithoutCgroupsTheHardwareCounts) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  const MachineResources machine = read();
  EXPECT_EQ(machine.cpus, CPU_COUNT(&set));
  EXPECT_EQ(machine.memory_bytes, 8 * kGib);
  EXPECT_FALSE(machine.hostname.empty());
}

TEST_F(ResourcesTest, TheAffinityMaskLimits) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(read().cpus, 1);
  ::sched_setaffinity(0, sizeof all, &all);
}

TEST_F(ResourcesTest, Version2LimitsAtEveryLevelCount) {
  put("cgroup", "0::/user/job\n");
  put("fs/user/job/cpu.max", "max 100000\n");
  put("fs/user/job/memory.max", "3221225472\n");
  put("fs/user/cpu.max", "50000 100000\n");
  put("fs/user/memory.max", "max\n");
  const MachineResources machine = read();
  EXPECT_EQ(machine.cpus, 0.5);
  EXPECT_EQ(machine.memory_bytes, 3 * kGib);
}

TEST_F(ResourcesTest, MemoryHighIsALimitAtEveryLevel) {
  put("cgroup", "0::/a/b/c\n");
  put("fs/a/b/c/memory.max", "max\n");
  put("fs/a/b/c/memory.high", "max\n");
  put("fs/a/b/memory.max", "6442450944\n");
  put("fs/a/b/memory.high", "5368709120\n");
  put("fs/a/memory.high", "7516192768\n");
  EXPECT_EQ(read().memory_bytes, 5 * kGib);
  EXPECT_EQ(read().memory_free_bytes, 5 * kGib);
}

TEST_F(ResourcesTest, WhatOthersHoldIsNotFreeButFilePagesAre) {
  put("meminfo", "MemTotal: 8388608 kB\nMemAvailable: 7340032 kB\nSwapFree: 8388608 kB\n");
  EXPECT_EQ(read().memory_bytes, 8 * kGib);
  EXPECT_EQ(read().memory_free_bytes, 7 * kGib) << "swap does not count";
  put("cgroup", "0::/a/b\n");
  put("fs/a/b/memory.max", "4294967296\n");
  put("fs/a/b/memory.current", "536870912\n");
  put("fs/a/memory.max", "6442450944\n");
  put("fs/a/memory.current", "5368709120\n");  // of which the kernel can drop 2 GiB
  put("fs/a/memory.stat",
      "anon 3221225472\nfile 4294967296\nshmem 1073741824\ninactive_file 1073741824\n"
      "active_file 1073741824\n");
  EXPECT_EQ(read().memory_bytes, 4 * kGib);
  EXPECT_EQ(read().memory_free_bytes, 3 * kGib) << "6 - (5 - 2) of the parent, 3.5 of its own";
  put("fs/a/memory.current", "9663676416\n");
  EXPECT_EQ(read().memory_free_bytes, 0u) << "more than the limit, which was lowered";
}

TEST_F(ResourcesTest, Version1SaysWhatIsHeldAsWell) {
  put("cgroup", "4:memory:/a\n");
  put("fs/memory/a/memory.limit_in_bytes", "4294967296\n");
  put("fs/memory/a/memory.usage_in_bytes", "2147483648\n");
  put("fs/memory/a/memory.stat", "total_inactive_file 536870912\ntotal_active_file 536870912\n");
  EXPECT_EQ(read().memory_free_bytes, 3 * kGib);
}

TEST_F(ResourcesTest, Version1LimitsCountAlsoBesideVersion2) {
  put("cgroup", "4:memory:/host/only/path\n1:cpu,cpuacct:/\n0::/\n");
  put("fs/memory/memory.limit_in_bytes", "2147483648\n");  // the path is the host's
  put("fs/cpu,cpuacct/cpu.cfs_quota_us", "75000\n");
  put("fs/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put("fs/unified/memory.max", "1073741824\n");
  const MachineResources machine = read();
  EXPECT_EQ(machine.cpus, 0.75);
  EXPECT_EQ(machine.memory_bytes, kGib);
}

TEST_F(ResourcesTest, NoLimitIsNoLimit) {
  put("cgroup", "4:memory:/\n1:cpu:/\n");
  put("fs/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("fs/cpu/cpu.cfs_quota_us", "-1\n");
  put("fs/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read().memory_bytes, 8 * kGib);
  EXPECT_GE(read().cpus, 1);
}

TEST_F(ResourcesTest, SlurmNamesTheNode) {
  ::setenv("SLURMD_NODENAME", "n2", 1);
  EXPECT_EQ(read().hostname, "n2");
  ::unsetenv("SLURMD_NODENAME");
}

TEST_F(ResourcesTest, AMachineThatCannotBeReadIsAnError) {
  const auto absent = read_machine_resources({.memory_info = directory_ / "absent"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().where, (directory_ / "absent").string());
  EXPECT_TRUE(read_machine_resources());
}

TEST_F(ResourcesTest, DiskSpace) {
  const auto space = disk_space(directory_);
  ASSERT_TRUE(space);
  EXPECT_GT(space->free_bytes, 0u);
  EXPECT_GE(space->size_bytes, space->free_bytes);
  EXPECT_FALSE(disk_space(directory_ / "absent"));
}

}  // namespace
}  // namespace tandem::node
