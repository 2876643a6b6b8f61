#include "runtime/collective/call.h"

namespace tandem::collective {

std::string describe(const Call& call) {
  const std::string bytes = std::to_string(call.bytes) + " bytes";
  switch (call.operation) {
    case Operation::kAllReduceSum:
      return "all_reduce_sum of " + bytes;
    case Operation::kBroadcast:
      return "broadcast of " + bytes + " from rank " + std::to_string(call.root);
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kReduceScatter:
      return "reduce_scatter of " + bytes;
    case Operation::kGatherShards:
      return "all_gather of " + bytes;
  }
  return "unknown operation";  // a peer's number
}

Error ranks_disagree(int rank, const Call& its_call, int our_rank, const Call& our_call) {
  return {.code = ErrorCode::kInvalid,
          .message = "rank " + std::to_string(rank) + " calls " + describe(its_call) +
                     " where rank " + std::to_string(our_rank) + " calls " + describe(our_call),
          .where = {},
          .help = {}};
}

Error timed_out(const Call& call, int awaited_rank) {
  return {.code = ErrorCode::kTimedOut,
          .message = "timed out in " + describe(call) + ", waiting for rank " +
                     std::to_string(awaited_rank),
          .where = {},
          .help = {}};
}

Error rank_gone(const Call& call, int rank) {
  return {.code = ErrorCode::kFailed,
          .message = "rank " + std::to_string(rank) + " has gone during " + describe(call),
          .where = {},
          .help = {}};
}

}  // namespace tandem::collective
