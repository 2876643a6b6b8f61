// How the ranks of a learner's gang on GPUs come to share gradients and weights by NCCL: they agree
// on an epoch over their sockets, then start a communicator of their own. The gang's life is that
// of its sockets: when one rank has gone or fails, the others' calls over these fail, and the
// whole gang is started again with a new epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/shard_exchange.h"
#include "runtime/device/stream.h"
#include "runtime/weights/weights.h"

namespace tandem::cli {

struct GangShardsConfig {
  std::string name;               // of the communicator: "job/learner"
  std::uint64_t epoch = 0;        // the gang's incarnation
  runtime::WeightsLayout layout;  // of this rank's weights
  std::int64_t bucket_floats_max = 0;
  Duration timeout{};  // of each agreement, of the start, and of each call afterwards
  runtime::DeviceKind device = runtime::DeviceKind::kCuda;
};

// All ranks of `gang` call it. kInvalid, before any rank has called NCCL's start, where this rank's
// layout is not that of rank 0, with the first tensor that differs; kFailed where another rank
// refused or has gone.
Result<std::unique_ptr<runtime::ShardExchange>> make_gang_shards(
    const GangShardsConfig& config, runtime::Collective& gang, const runtime::NcclProcess& process);

}  // namespace tandem::cli
