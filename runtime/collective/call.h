// One call of a collective, as all ranks must agree on it, and the errors about it. Internal to
// runtime/collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace tandem::collective {

// The numbers travel in frame headers (connection.h).
enum class Operation : std::uint32_t {
  kAllReduceSum = 1,
  kBroadcast,
  kAllGather,
  kBarrier,
  kReduceScatter,  // these two of a ShardExchange
  kGatherShards,
};

// Two ranks are in the same call if these are equal.
struct Call {
  Operation operation = Operation::kBarrier;
  std::uint32_t root = 0;   // the root of a broadcast; else 0
  std::uint64_t bytes = 0;  // of each rank's data; 0 for barrier and all_gather (sizes differ)

  bool operator==(const Call&) const = default;
};

std::string describe(const Call& call);  // "broadcast of 4096 bytes from rank 2"

// The errors of CO-2 and CO-3. Each names the rank that is to blame, as far as this rank knows.
Error ranks_disagree(int rank, const Call& its_call, int our_rank, const Call& our_call);
Error timed_out(const Call& call, int awaited_rank);
Error rank_gone(const Call& call, int rank);

}  // namespace tandem::collective
