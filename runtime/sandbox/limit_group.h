// Cgroups of a sandbox: its processes are counted together, and its memory, the scratch folder's
// pages included. Version 1 and version 2; mostly root alone may make them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/sandbox/profile.h"

namespace tandem::sandbox {

// Removed at its own end, when no process may be left in it.
class LimitGroup {
 public:
  LimitGroup() = default;
  LimitGroup(LimitGroup&&) = default;
  LimitGroup& operator=(LimitGroup&& other) noexcept;
  ~LimitGroup();

  // Where the cgroups of this process are, and how a group is made there: as mkdtemp() does, which
  // the kernel answers with the group's files. A test has folders of its own.
  struct Hierarchies {
    std::filesystem::path own = "/proc/self/cgroup", mount = "/sys/fs/cgroup";
    std::function<bool(char* path)> make_folder = [](char* path) { return mkdtemp(path); };
  };
  // With those limits of the profile that this machine has cgroups to give for.
  static LimitGroup make(const Profile& profile, const Hierarchies& hierarchies);
  static LimitGroup make(const Profile& profile) { return make(profile, {}); }

  bool counts_processes() const { return pids_; }
  bool counts_memory() const { return memory_; }
  // Files that a process joins the cgroups by, writing "0" to each.
  std::vector<int> entrances() const;

 private:
  struct Folder {
    std::filesystem::path path;
    OwnedFd entrance;
  };
  bool add(const std::filesystem::path& level, const Profile& profile,
           const Hierarchies& hierarchies);

  std::vector<Folder> folders_;
  bool pids_ = false, memory_ = false;
};

}  // namespace tandem::sandbox
