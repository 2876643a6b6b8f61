// Makes the publisher and the subscribers of a weight family, by its configuration, and ends a
// family. Not responsible for what the ends do (weight_ends.h).
#pragma once

#include <memory>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/weights/weight_ends.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// Fails if a live publisher has the name (its pid is in the message) or there is no room. kCudaIpc
// takes `slots` times the arena of the GPU's memory, and needs the CUDA module. A publisher that is
// destroyed leaves its family to the next one, as a publisher that dies does; remove_weights() ends
// the family.
Result<std::unique_ptr<WeightPublisher>> make_publisher(const WeightsConfig& config);

// May be called before the publisher exists: no version is offered then.
std::unique_ptr<WeightSubscriber> make_subscriber(const WeightsConfig& config);

// Ends a family: removes its shared memory and its files in `directory`. Subscribers that still
// copy finish or fail. Fails if a live publisher has the name.
Result<void> remove_weights(const WeightsConfig& config);

// Removes the shared memory of all families whose name starts with `name_prefix` and that no live
// publisher or subscriber uses (all of them were killed); returns how many were removed.
int reclaim_stale_weights(std::string_view name_prefix);

}  // namespace tandem::weights
