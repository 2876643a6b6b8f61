#include "actors/api/home_disk.h"

#include <utility>

#include "runtime/node/resources.h"

namespace tandem::api {

DiskLook disk_look(std::filesystem::path home) {
  return [home = std::move(home)]() -> std::optional<HomeDisk> {
    const auto space = node::disk_space(home);
    if (!space) return std::nullopt;
    return HomeDisk{.directory = home.string(),
                    .size_bytes = space->size_bytes,
                    .free_bytes = space->free_bytes};
  };
}

}  // namespace tandem::api
