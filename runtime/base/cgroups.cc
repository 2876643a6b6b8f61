#include "runtime/base/cgroups.h"

#include <sstream>
#include <string_view>

#include "runtime/base/file.h"

namespace tandem {
namespace {

// "/a/b" below the mount M: M/a/b, M/a, M.
std::vector<std::filesystem::path> levels(const std::filesystem::path& mount,
                                          std::string_view group) {
  std::vector<std::filesystem::path> folders;
  std::filesystem::path below = std::filesystem::path(group).relative_path();
  while (!below.empty()) {
    folders.push_back(mount / below);
    below = below.parent_path();
  }
  folders.push_back(mount);
  return folders;
}

}  // namespace

std::vector<Cgroup> read_cgroups(const std::filesystem::path& own_cgroups,
                                 const std::filesystem::path& mount) {
  std::vector<Cgroup> cgroups;
  const Result<std::string> text = read_file(own_cgroups);
  if (!text) return cgroups;
  std::istringstream lines(*text);
  // Lines are "number:controllers:group". Version 2 has no controllers there and may be mounted at
  // either place; version 1 is mounted in a directory that is named like its controllers.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      cgroups.push_back({{}, levels(mount, group)});
      cgroups.push_back({{}, levels(mount / "unified", group)});
    } else {
      cgroups.push_back({controllers, levels(mount / controllers, group)});
    }
  }
  return cgroups;
}

}  // namespace tandem
