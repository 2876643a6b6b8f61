#include "actors/api/home_disk.h"

#include <memory>
#include <utility>

#include "runtime/node/disk_watch.h"

namespace tandem::api {

DiskLook disk_look(std::filesystem::path home) {
  std::string directory = home.string();
  const auto watch = std::make_shared<node::DiskWatch>(
      [home = std::move(home)] { return node::disk_space(home); });
  return [watch, directory = std::move(directory)]() -> std::optional<HomeDisk> {
    const auto space = watch->newest();
    if (!space) return std::nullopt;
    return HomeDisk{
        .directory = directory, .size_bytes = space->size_bytes, .free_bytes = space->free_bytes};
  };
}

}  // namespace tandem::api
