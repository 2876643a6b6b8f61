// How the ranks of a learner's gang on GPUs come to share gradients and weights by NCCL: they agree
// on an epoch over the sockets of the gang, then start a communicator of their own.
//
// The sockets decide how long the gang lasts: when one rank has gone or fails, the calls of the
// others over these sockets fail, and the whole gang is started again with a new incarnation, which
// is the new epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/shard_exchange.h"
#include "runtime/device/stream.h"
#include "runtime/weights/weights_config.h"

namespace tandem::app {

struct GangShardsConfig {
  std::string name;               // the communicator's name: "job/learner"
  std::uint64_t epoch = 0;        // the incarnation of the gang
  weights::WeightsLayout layout;  // the layout of this rank's weights
  // The largest bucket that will be summed, in floats: bounds the buffers.
  std::int64_t bucket_floats_max = 0;
  Duration timeout{};  // for each agreement, the start, and each call later
  device::DeviceKind device = device::DeviceKind::kCuda;
};

// Called by all ranks of `gang`; blocks until all have called it or `timeout` passes. kInvalid,
// before any rank has called NCCL's start, where this rank's layout is not that of rank 0, with the
// first tensor that differs; kFailed where another rank refused or has gone. `process` outlives the
// result.
Result<std::unique_ptr<collective::ShardExchange>> make_gang_shards(
    const GangShardsConfig& config, collective::Collective& gang,
    const collective::NcclProcess& process);

}  // namespace tandem::app
