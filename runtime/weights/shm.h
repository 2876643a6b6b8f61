// The weight family in shared memory: publisher and subscribers on one host. A ring of reused
// slots (cold shared memory is no faster than TCP, warm memory is ten times as fast).
#pragma once

#include <memory>

#include "runtime/weights/weights.h"

namespace tandem::runtime {

Result<std::unique_ptr<WeightPublisher>> make_shm_publisher(const WeightsConfig& config);
std::unique_ptr<WeightSubscriber> make_shm_subscriber(const WeightsConfig& config);

}  // namespace tandem::runtime
