// Operations of NCCL in words and figures, for errors and records, and the check whether an
// operation makes sense. Pure. Internal to runtime/collective.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_communicator.h"

namespace tandem::runtime {

NcclKind kind_of(const NcclOperation& operation);           // kGroup if there are several transfers
std::uint64_t bytes_of(const NcclOperation& operation);     // of all transfers together
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

}  // namespace tandem::runtime
