// The weight family in a directory, which every host that mounts it can read:
//   v<version>/arena.bin, manifest.json, version.json   written aside, then renamed: whole or
//   absent LATEST                                              the newest version's number
//   family.json                                         publisher_life; lineage (counts
//   forgettings) publisher.lock                                      who publishes
// A version that is removed while a subscriber copies it stays readable through the open file, so
// nothing ever waits for a subscriber.
#pragma once

#include <memory>

#include "runtime/weights/weights.h"

namespace tandem::runtime {

Result<std::unique_ptr<WeightPublisher>> make_disk_publisher(const WeightsConfig& config);
std::unique_ptr<WeightSubscriber> make_disk_subscriber(const WeightsConfig& config);
Result<void> remove_disk_weights(const WeightsConfig& config);

}  // namespace tandem::runtime
