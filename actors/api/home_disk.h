// The disk of TANDEM_HOME, on which runs and journals lie, as /metrics and the alerts show it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace tandem::api {

struct HomeDisk {
  std::string directory;
  std::uint64_t size_bytes = 0, free_bytes = 0;  // free: what this user can still write
};
// Its newest figures, without a wait for the disk (DiskWatch); nullopt where no look at it was good
// yet.
using DiskLook = std::function<std::optional<HomeDisk>()>;
DiskLook disk_look(std::filesystem::path home);

}  // namespace tandem::api
