// The weight family of kNccl: versions lie in shared memory and are served, as of kTcp, and each is
// also broadcast by NCCL to the ranks of a membership epoch (broadcast.h). A subscriber that misses
// a broadcast fetches: from the shared memory on the publisher's host, over TCP elsewhere.
//
// NCCL sends from and receives into two buckets for each epoch, which are allocated by NCCL and
// registered with the epoch's communicator (broadcast_staging.h).
//
// Threading: each epoch has a thread of its own, which waits for NCCL, copies and hashes. Decoding
// is therefore not interrupted, except for one copy on the device when a version is taken over.
#pragma once

#include <memory>

#include "runtime/weights/weight_ends.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// Broadcasts read a version where the publisher left it, so there are two places more than
// WeightsConfig::slots: for the version that is being broadcast, and for the one that waits. Hence
// publish() never waits for a broadcast (WB-3).
inline constexpr int kBroadcastSlots = 2;

// These work as make_publisher() and make_subscriber() of weight_family.h; `config.broadcasting`
// must be set.
Result<std::unique_ptr<WeightPublisher>> make_nccl_publisher(const WeightsConfig& config);
std::unique_ptr<WeightSubscriber> make_nccl_subscriber(const WeightsConfig& config);

}  // namespace tandem::weights
