#include "runtime/sandbox/limit_group.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "runtime/base/cgroups.h"
#include "runtime/base/file.h"

namespace tandem::sandbox {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  std::getline(in, word);
  return word;
}

// A hierarchy of version 2 in folders of ours: a new group has the files of the controllers that
// the level above it gives, as the kernel makes them.
class FakeV2 {
 public:
  FakeV2() {
    std::string name = (fs::temp_directory_path() / "tandem-cgroup-XXXXXX").string();
    root_ = mkdtemp(name.data());
    std::ofstream(root_ / "own") << "0::/outer/mine\n";
    for (const char* level : {"mount", "mount/outer", "mount/outer/mine"})
      fs::create_directory(root_ / level);
    std::ofstream(root_ / "mount/outer/cgroup.subtree_control");
  }
  ~FakeV2() { fs::remove_all(root_); }

  fs::path level(const char* name) const { return root_ / "mount" / name; }
  LimitGroup::Hierarchies hierarchies() {
    return {.own = root_ / "own", .mount = root_ / "mount", .make_folder = [this](char* path) {
              if (!mkdtemp(path)) return false;
              made_.emplace_back(path);
              std::ofstream(fs::path(path) / "cgroup.procs");
              // Our own group has a process, and gives its children nothing.
              if (fs::path(path).parent_path() == level("outer"))
                for (const char* file : {"pids.max", "memory.max", "memory.swap.max"})
                  std::ofstream(fs::path(path) / file);
              return true;
            }};
  }
  const std::vector<fs::path>& made() const { return made_; }

 private:
  fs::path root_;
  std::vector<fs::path> made_;
};

Profile profile_of_few() {
  Profile profile;
  profile.processes = 10;
  profile.memory_bytes = 1u << 20;
  return profile;
}

TEST(LimitGroup, OfVersion2IsMadeAtTheFirstLevelThatGivesControllers) {
  FakeV2 machine;
  const LimitGroup group = LimitGroup::make(profile_of_few(), machine.hierarchies());
  EXPECT_TRUE(group.counts_processes());
  EXPECT_TRUE(group.counts_memory());
  EXPECT_EQ(group.entrances().size(), 1u);
  ASSERT_EQ(machine.made().size(), 2u);
  EXPECT_EQ(machine.made()[0].parent_path(), machine.level("outer/mine"));
  const fs::path& folder = machine.made()[1];
  EXPECT_EQ(folder.parent_path(), machine.level("outer"));
  EXPECT_EQ(text_of(folder / "pids.max"), "12") << "the keeper and its helper count as well";
  EXPECT_EQ(text_of(folder / "memory.max"), "1048576");
  EXPECT_EQ(text_of(folder / "memory.swap.max"), "0");
}

TEST(LimitGroup, WithoutAHierarchyNothingIsCounted) {
  const LimitGroup group =
      LimitGroup::make({}, {.own = "/nowhere", .mount = "/nowhere", .make_folder = nullptr});
  EXPECT_FALSE(group.counts_processes() || group.counts_memory());
  EXPECT_TRUE(group.entrances().empty());
}

TEST(LimitGroup, OfThisMachineIsThereAndGoes) {
  const LimitGroup probe = LimitGroup::make(profile_of_few());
  if (!probe.counts_processes()) GTEST_SKIP() << "this process may make no cgroup that counts";
  std::vector<fs::path> made;
  LimitGroup::Hierarchies noting;
  noting.make_folder = [&](char* path) {
    if (!mkdtemp(path)) return false;
    made.emplace_back(path);
    return true;
  };
  {
    const LimitGroup group = LimitGroup::make(profile_of_few(), noting);
    ASSERT_FALSE(made.empty());
    EXPECT_TRUE(fs::exists(made.back()));
  }
  for (const fs::path& folder : made) EXPECT_FALSE(fs::exists(folder)) << folder;
}

TEST(LimitGroup, OfThisMachinesVersion2) {
  std::string why = "this machine has no cgroup of version 2";
  for (const Cgroup& hierarchy : read_cgroups("/proc/self/cgroup", "/sys/fs/cgroup"))
    if (hierarchy.controllers.empty())
      why =
          text_of(hierarchy.levels.back() / "cgroup.controllers").find("pids") == std::string::npos
              ? "version 2 has neither pids nor memory here; version 1 has them"
              : "";
  if (!why.empty()) GTEST_SKIP() << why;
  const LimitGroup group = LimitGroup::make(profile_of_few());
  if (!group.counts_processes()) GTEST_SKIP() << "this process may make no group there";
  EXPECT_TRUE(group.counts_memory());
  EXPECT_EQ(group.entrances().size(), 1u);
}

}  // namespace
}  // namespace tandem::sandbox
