// The directories in which the kernel shows the cgroups of this process: of version 1, of version
// 2, and of both mixed, where version 2 is mounted in the directory "unified". This header finds
// the directories; runtime/node reads the files in them, and runtime/sandbox makes groups below.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

// One hierarchy, as one line of /proc/self/cgroup names it.
struct Cgroup {
  std::string controllers;  // in version 1: "memory", "cpu,cpuacct"; empty: version 2
  // The group's directories, from the process's own group up to the mount. A limit at any level
  // holds. In a container the path may name directories that only the host sees: these do not
  // exist, and readers skip them.
  std::vector<std::filesystem::path> levels;
};

// `own_cgroups` is /proc/self/cgroup and `mount` is /sys/fs/cgroup, but in a test. Empty where
// `own_cgroups` cannot be read.
std::vector<Cgroup> read_cgroups(const std::filesystem::path& own_cgroups,
                                 const std::filesystem::path& mount);

}  // namespace tandem
