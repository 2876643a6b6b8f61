// The weight families of one host, kShm and kCudaIpc: a ring of reused slots, which shared memory
// guards (shm_segment.h) and slot_memory.h fills. Slots are reused because pages that are touched
// for the first time are slow: cold shared memory is no faster than TCP, and warm memory is ten
// times as fast.
#pragma once

#include <memory>

#include "runtime/weights/weight_ends.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// These work as make_publisher() and make_subscriber() of weight_family.h.
Result<std::unique_ptr<WeightPublisher>> make_shm_publisher(const WeightsConfig& config);
std::unique_ptr<WeightSubscriber> make_shm_subscriber(const WeightsConfig& config);

}  // namespace tandem::weights
