// A ShardExchange by NCCL, over a communicator of its own. Each pair of ranks sends its shards
// directly, so that the sums can be made in rank order (SH-1). A rank sends and receives (G - 1) /
// G n floats a call, as much as in a ring.
//
// Two calls are under way at a time: while one call's pieces are summed the next one's travel.
// Device memory of its own: about 2 (G - 1) / G bucket_floats_max floats, for pieces.
//
// Not responsible for telling the other ranks of an error: an error aborts this rank's
// communicator, and the others end by their deadlines or by their owners. Nor for leaving in order:
// the destructor aborts the calls under way, so ranks agree that they have finished before one of
// them leaves.
//
// Calls wait for the communicator's start, until the start's own deadline. An operation's label is
// "reduce_scatter 12 of 4096 floats": the twelfth call of the exchange.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/shard_exchange.h"

namespace tandem::collective {

inline constexpr int kShardRanksMax = 64;

struct NcclShardsConfig {
  std::unique_ptr<NcclCommunicator> communicator;  // started or starting; for this exchange alone
  int rank = 0;                                    // as in its epoch
  int size = 1;
  std::int64_t bucket_floats_max = 0;  // a larger bucket is a bug
  Duration timeout{};                  // the time limit of each call, from when it is made
  device::DeviceKind device = device::DeviceKind::kCuda;
  SumPieces sum = sum_on_host;  // on the device
};

// Errors: kOutOfMemory; kInvalid for more than kShardRanksMax ranks.
Result<std::unique_ptr<ShardExchange>> make_nccl_shards(NcclShardsConfig config);

}  // namespace tandem::collective
