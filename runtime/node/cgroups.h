// Where the kernel shows the cgroups of this process: version 1, version 2, and both mixed, where
// version 2 is mounted in the folder "unified". Not here: what is read there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::runtime {

struct Cgroup {
  std::string controllers;  // of version 1: "memory", "cpu,cpuacct"; empty: version 2
  // Its folders, from the process's own group up to the mount. In a container the path may name
  // folders that only the host sees; those are just not there.
  std::vector<std::filesystem::path> levels;
};

// None where `own_cgroups` (/proc/self/cgroup) cannot be read.
std::vector<Cgroup> read_cgroups(const std::filesystem::path& own_cgroups,
                                 const std::filesystem::path& mount);

}  // namespace tandem::runtime
