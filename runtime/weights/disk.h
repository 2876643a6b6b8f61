// The weight family in a directory, which every host that mounts the directory can read:
//
//   v<version>/       arena.bin, manifest.json, version.json; written aside and then
//                     renamed, so that a version is whole or absent
//   LATEST            the number of the newest version
//   family.json       publisher_life: how many publishers have started; lineage: how often versions
//                     were forgotten
//   publisher.lock    locked by the publisher (WT-4)
//   staging/          the version that is being written
//
// A version that is removed while a subscriber copies it stays readable through the open file, so a
// publisher never waits for a subscriber.
#pragma once

#include <memory>

#include "runtime/weights/weight_ends.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// These work as make_publisher(), make_subscriber() and remove_weights() of weight_family.h, for
// kDisk.
Result<std::unique_ptr<WeightPublisher>> make_disk_publisher(const WeightsConfig& config);
std::unique_ptr<WeightSubscriber> make_disk_subscriber(const WeightsConfig& config);
Result<void> remove_disk_weights(const WeightsConfig& config);

}  // namespace tandem::weights
