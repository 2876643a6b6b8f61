// Version 1 has a hierarchy for each controller, in which a group may be made below our own.
// Version 2 gives a group controllers only below one without processes, so the levels above our own
// are tried as well; limits of these hold all the same.
#include "runtime/sandbox/limit_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/base/cgroups.h"

namespace tandem::sandbox {
namespace {

namespace fs = std::filesystem;

// Tasks of the keeper, and of its helper at the end, beside the program's.
constexpr std::uint64_t kTasksOfKeeper = 2;

bool write_value(const fs::path& file, const std::string& value) {
  const OwnedFd at(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return at && write(at.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

}  // namespace

LimitGroup& LimitGroup::operator=(LimitGroup&& other) noexcept {
  std::swap(folders_, other.folders_);
  std::swap(pids_, other.pids_);
  std::swap(memory_, other.memory_);
  return *this;
}

LimitGroup::~LimitGroup() {
  for (const Folder& folder : folders_) rmdir(folder.path.c_str());
}

std::vector<int> LimitGroup::entrances() const {
  std::vector<int> fds;
  for (const Folder& folder : folders_) fds.push_back(folder.entrance.get());
  return fds;
}

// Makes a group at the level, with the limits that it can have there.
bool LimitGroup::add(const fs::path& level, const Profile& profile,
                     const Hierarchies& hierarchies) {
  std::string name = (level / "tandem-sandbox-XXXXXX").string();
  if (!hierarchies.make_folder(name.data())) return false;
  const fs::path group(name);
  if (access((level / "cgroup.subtree_control").c_str(), W_OK) == 0 &&
      access((group / "pids.max").c_str(), F_OK) != 0)
    write_value(level / "cgroup.subtree_control", "+pids +memory");
  const std::string tasks = std::to_string(profile.processes + kTasksOfKeeper);
  const bool pids = !pids_ && write_value(group / "pids.max", tasks);
  bool memory = false;
  if (!memory_ && profile.memory_bytes) {
    const std::string bytes = std::to_string(*profile.memory_bytes);
    memory = write_value(group / "memory.max", bytes) ||
             write_value(group / "memory.limit_in_bytes", bytes);
    // Not every machine counts swapped pages.
    write_value(group / "memory.swap.max", "0");
    write_value(group / "memory.memsw.limit_in_bytes", bytes);
  }
  OwnedFd entrance(open((group / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!entrance || !(pids || memory)) {
    rmdir(group.c_str());
    return false;
  }
  pids_ |= pids;
  memory_ |= memory;
  folders_.push_back({group, std::move(entrance)});
  return true;
}

LimitGroup LimitGroup::make(const Profile& profile, const Hierarchies& hierarchies) {
  LimitGroup group;
  for (const Cgroup& hierarchy : read_cgroups(hierarchies.own, hierarchies.mount)) {
    const bool version_2 = hierarchy.controllers.empty();
    if (!version_2 && hierarchy.controllers != "pids" && hierarchy.controllers != "memory")
      continue;
    if (version_2 && (group.pids_ || group.memory_)) continue;
    for (const fs::path& level : hierarchy.levels)
      if (group.add(level, profile, hierarchies)) break;
  }
  return group;
}

}  // namespace tandem::sandbox
