// Cgroups of a sandbox: its processes are counted together, and its memory, the scratch folder's
// pages included. Version 1 and version 2; mostly root alone may make them.
#pragma once

#include <filesystem>
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

  // With those limits of the profile that this machine has cgroups to give for.
  static LimitGroup make(const Profile& profile);

  bool counts_processes() const { return pids_; }
  bool counts_memory() const { return memory_; }
  // Files that a process joins the cgroups by, writing "0" to each.
  std::vector<int> entrances() const;

 private:
  struct Folder {
    std::filesystem::path path;
    OwnedFd entrance;
  };
  bool add(const std::filesystem::path& level, const Profile& profile);

  std::vector<Folder> folders_;
  bool pids_ = false, memory_ = false;
};

}  // namespace tandem::sandbox
