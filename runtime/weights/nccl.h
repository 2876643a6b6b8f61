// The weight family of kNccl: versions lie in shared memory and are served, as of kTcp, and each is
// also broadcast by NCCL to the ranks of a membership epoch (broadcast.h). Who misses a broadcast
// fetches: from the shared memory on the publisher's host, over TCP elsewhere.
//
// The memory that NCCL uses, two buckets for each epoch, is plain memory of the device; it is not
// registered with NCCL, which may cost bandwidth on some networks.
//
// Threading: each epoch has a thread of its own, which waits for NCCL, copies and hashes, so
// decoding is never interrupted save for one copy on the device when a version is taken over.
#pragma once

#include <memory>

#include "runtime/weights/weights.h"

namespace tandem::runtime {

// Broadcasts read a version where it lies, so there are two places more than WeightsConfig::slots:
// for the version that is being broadcast, and for the one that waits. Hence publish() never waits
// for a broadcast (WB-3).
inline constexpr int kBroadcastSlots = 2;

Result<std::unique_ptr<WeightPublisher>> make_nccl_publisher(const WeightsConfig& config);
std::unique_ptr<WeightSubscriber> make_nccl_subscriber(const WeightsConfig& config);

}  // namespace tandem::runtime
