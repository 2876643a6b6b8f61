// A request to NCCL as a value; its words and figures, for errors and records; and the check
// whether it makes sense. Pure. The functions are internal to runtime/collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/collective/nccl_process.h"

namespace tandem::collective {

// One broadcast, send, receive or sum of this rank, as part of an operation.
struct NcclTransfer {
  NcclKind kind = NcclKind::kBroadcast;  // or kSend, kReceive, kAllReduce
  std::byte* memory = nullptr;           // a GPU's; of a broadcast's root and of a send: only read
  std::size_t bytes = 0;                 // of a sum: whole f32, in an order that NCCL chooses
  int peer = 0;                          // the other rank; of a broadcast the root; of a sum 0
};

inline constexpr std::size_t kNcclTransfersMax = 4096;  // in one operation
inline constexpr std::size_t kNcclOperationsMax = 256;  // under way in one communicator

// One request to NCCL. Several transfers are one group: they progress together, in no order. The
// memory must stay until the outcome is known (NC-3).
struct NcclOperation {
  std::string label;  // the caller's words for errors and records: "version 7, bucket 2"
  std::vector<NcclTransfer> transfers;
  void* stream = nullptr;  // the transfers take place in this stream's order
  Duration timeout{};      // from submit() to its end
};

NcclKind kind_of(const NcclOperation& operation);           // kGroup if there are several transfers
std::uint64_t bytes_of(const NcclOperation& operation);     // all transfers together
std::vector<int> peers_of(const NcclOperation& operation);  // ascending, each once

// "broadcast of 4096 bytes from rank 0 (version 7)"
std::string describe_operation(const NcclOperation& operation);
// The ranks that an operation of rank `rank` may wait for, as far as they are known there: "rank 0,
// rank 2", or "the other ranks".
std::string awaited_ranks(const NcclOperation& operation, int rank);

// NC-5: kInvalid where NCCL would fail, or hang, for a reason that can be seen here.
Result<void> check_operation(const NcclOperation& operation, const NcclEpoch& epoch);

Error refusal(const std::string& what, const std::string& why);  // kInvalid
// The error for a call that NCCL refused, or a failure that it reports: "<attempt>: ncclSend:
// invalid usage (…)". kInvalid where NCCL blames the arguments, else kFailed.
Error nccl_failure(const NcclApi& api, const char* function, NcclResult result, NcclApi::Comm comm,
                   const std::string& attempt);

std::string text_of_seconds(Duration duration);  // "2.5 s"

}  // namespace tandem::collective
