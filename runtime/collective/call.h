// One call of a collective as its ranks must agree on it. Internal to runtime/collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace tandem::runtime {

enum class Operation : std::uint32_t {
  kAllReduceSum = 1,
  kBroadcast,
  kAllGather,
  kBarrier,
  kReduceScatter,  // these two of a ShardExchange
  kGatherShards,
};

struct Call {
  Operation operation = Operation::kBarrier;
  std::uint32_t root = 0;   // of a broadcast
  std::uint64_t bytes = 0;  // that every rank must have alike: 0 for all_gather and barrier

  bool operator==(const Call&) const = default;
};

std::string describe(const Call& call);  // "broadcast of 4096 bytes from rank 2"

Error ranks_disagree(int rank, const Call& its_call, int our_rank, const Call& our_call);
Error timed_out(const Call& call, int awaited_rank);
Error rank_gone(const Call& call, int rank);

}  // namespace tandem::runtime
