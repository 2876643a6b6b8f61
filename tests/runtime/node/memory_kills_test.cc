#include "runtime/node/memory_kills.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "runtime/base/file.h"

namespace tandem::node {
namespace {

using std::chrono::seconds;

Time at(std::int64_t s) { return Time{} + Duration(seconds(s)); }

// A kernel made of files.
class MemoryKillsTest : public testing::Test {
 protected:
  MemoryKillsTest() {
    std::string pattern = testing::TempDir() + "memory_kills.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    put("vmstat", "pgfault 12345\noom_kill 7\n");
  }
  ~MemoryKillsTest() override { std::filesystem::remove_all(directory_); }

  void put(const std::filesystem::path& name, std::string_view text) const {
    std::filesystem::create_directories((directory_ / name).parent_path());
    ASSERT_TRUE(write_file(directory_ / name, std::as_bytes(std::span(text))));
  }
  MemoryKillCounts read() const {
    return read_memory_kills({.own_cgroups = directory_ / "cgroup",
                              .cgroup_mount = directory_ / "fs",
                              .machine = directory_ / "vmstat"});
  }

  std::filesystem::path directory_;
};

TEST_F(MemoryKillsTest, Version2CountsInMemoryEventsOfTheNearestLevel) {
  put("cgroup", "0::/user/job\n");
  put("fs/user/job/memory.events", "low 0\nhigh 0\nmax 31\noom 4\noom_kill 3\noom_group_kill 1\n");
  put("fs/user/memory.events", "oom_kill 9\n");
  EXPECT_EQ(read().own, 3u);
  EXPECT_EQ(read().machine, 7u);
}

TEST_F(MemoryKillsTest, ALevelThatCannotBeReadIsCountedByTheOneAboveIt) {
  put("cgroup", "0::/host/only/path\n");  // a container sees its own group as the mount
  put("fs/memory.events", "oom 1\noom_kill 1\n");
  EXPECT_EQ(read().own, 1u);
}

TEST(MemoryKillScore, OfAProcessThatOffersItselfIsHigherThanItsParents) {
  const pid_t child = ::fork();
  if (child == 0) {
    die_first_for_memory();
    int score = 0;
    std::ifstream("/proc/self/oom_score_adj") >> score;
    ::_exit(score >= 500 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(MemoryKillsTest, Version1CountsInOomControl) {
  put("cgroup", "4:memory:/job\n2:cpu,cpuacct:/other\n1:name=systemd:/x\n0::/\n");
  put("fs/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  put("fs/cpu,cpuacct/other/memory.oom_control", "oom_kill 99\n");
  EXPECT_EQ(read().own, 2u);
}

TEST_F(MemoryKillsTest, WithoutAnyCgroupThereIsOnlyTheMachine) {
  EXPECT_EQ(read().own, std::nullopt);
  EXPECT_EQ(read().machine, 7u);
  put("cgroup", "4:memory:/job\n");
  put("fs/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");  // an old kernel
  EXPECT_EQ(read().own, std::nullopt);
  std::filesystem::remove(directory_ / "vmstat");
  EXPECT_EQ(read().machine, std::nullopt);
}

TEST(MemoryKillWatch, ACountExplainsOneEndAndNoMore) {  // MK-1
  MemoryKillWatch watch({.own = 5, .machine = 5});
  EXPECT_EQ(watch.claim(at(1), at(0)), MemoryKill::kNone) << "kills before it explain nothing";
  watch.note({.own = 7, .machine = 7}, at(2));
  EXPECT_EQ(watch.claim(at(2), at(0)), MemoryKill::kProven);
  watch.note({.own = 7, .machine = 7}, at(3));
  EXPECT_EQ(watch.claim(at(3), at(0)), MemoryKill::kProven);
  EXPECT_EQ(watch.claim(at(3), at(0)), MemoryKill::kNone);
}

TEST(MemoryKillWatch,
     AnOldCountExplainsNothing) {  // MK-1: the killed process was another host's child
  MemoryKillWatch watch({.own = 0, .machine = 0});
  watch.note({.own = 1, .machine = 1}, at(1));
  EXPECT_EQ(watch.claim(at(2) + kMemoryKillWindow, at(0)), MemoryKill::kNone);
}

TEST(MemoryKillWatch, ACountExplainsNoEndOfAProcessThatLivedOn) {  // MK-2
  MemoryKillWatch watch({.own = 0, .machine = 0});
  watch.note({.own = 1, .machine = 1}, at(2));  // the kill of a child of a child
  EXPECT_EQ(watch.claim(at(5), at(2)), MemoryKill::kNone);
  watch.note({.own = 2, .machine = 2}, at(6));
  EXPECT_EQ(watch.claim(at(6), at(5)), MemoryKill::kProven);
  EXPECT_EQ(watch.claim(at(7), at(1)), MemoryKill::kProven) << "another's that took long to end";
}

TEST(MemoryKillWatch, TheMachineHintsOnlyWhereTheOwnCountIsNotToBeHad) {
  MemoryKillWatch blind({.own = std::nullopt, .machine = 0});
  blind.note({.own = std::nullopt, .machine = 1}, at(1));
  EXPECT_EQ(blind.claim(at(1), at(0)), MemoryKill::kHinted);
  EXPECT_EQ(blind.claim(at(1), at(0)), MemoryKill::kNone);
  MemoryKillWatch seeing({.own = 0, .machine = 0});
  seeing.note({.own = 0, .machine = 1}, at(1));
  EXPECT_EQ(seeing.claim(at(1), at(0)), MemoryKill::kNone) << "a stranger in another cgroup";
}

TEST(KillMayBePending, IsNotSoOfAProcessThatLives) {
  EXPECT_FALSE(kill_may_be_pending(::getpid()));
  EXPECT_TRUE(kill_may_be_pending(0)) << "of none that is known";
}

TEST(ResidentBytes, AreThoseOfALivingProcess) {
  EXPECT_GT(resident_bytes(::getpid()).value_or(0), 100'000u);
  EXPECT_EQ(resident_bytes(0), std::nullopt);
}

}  // namespace
}  // namespace tandem::node
