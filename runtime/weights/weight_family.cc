#include "runtime/weights/weight_family.h"

#include "runtime/base/check.h"
#include "runtime/weights/disk.h"
#include "runtime/weights/nccl.h"
#include "runtime/weights/shm.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/tcp.h"

namespace tandem::weights {
namespace {

void check_config(const WeightsConfig& config) {
  CHECK(config.slots >= 2 && config.slots <= static_cast<int>(kSlotsMax));
  CHECK(config.layout.arena_bytes > 0);
  CHECK(!traits_of(config.type).nccl || config.broadcasting);
  CHECK(!config.name.empty() && config.name.find('/') == std::string::npos);
}

}  // namespace

Result<std::unique_ptr<WeightPublisher>> make_publisher(const WeightsConfig& config) {
  check_config(config);
  const WeightsType type = resolve(config);
  if (type == WeightsType::kDisk) return make_disk_publisher(config);
  if (type == WeightsType::kNccl) return make_nccl_publisher(config);
  if (type == WeightsType::kTcp || (type == WeightsType::kShm && config.serving))
    return make_tcp_publisher(config);
  return make_shm_publisher(config);
}

std::unique_ptr<WeightSubscriber> make_subscriber(const WeightsConfig& config) {
  check_config(config);
  const WeightsType type = resolve(config);
  if (config.type == WeightsType::kAuto) return make_auto_subscriber(config, type);
  if (type == WeightsType::kDisk) return make_disk_subscriber(config);
  if (type == WeightsType::kNccl) return make_nccl_subscriber(config);
  return type == WeightsType::kTcp ? make_tcp_subscriber(config) : make_shm_subscriber(config);
}

Result<void> remove_weights(const WeightsConfig& config) {
  if (config.type != WeightsType::kDisk) {
    if (auto removed = remove_segment(config.name); !removed) return removed;
  }
  const bool may_have_files =
      config.type == WeightsType::kDisk || config.type == WeightsType::kAuto;
  if (!may_have_files || config.directory.empty()) return {};
  return remove_disk_weights(config);
}

int reclaim_stale_weights(std::string_view name_prefix) {
  return remove_abandoned_segments(name_prefix);
}

}  // namespace tandem::weights
