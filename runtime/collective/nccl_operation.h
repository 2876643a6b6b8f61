// What an operation of NCCL is in words and figures, for errors and records, and whether it makes
// sense. Pure. Internal to runtime/collective.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_communicator.h"

namespace tandem::runtime {

NcclKind kind_of(const NcclOperation& operation);
std::uint64_t bytes_of(const NcclOperation& operation);
std::vector<int> peers_of(const NcclOperation& operation);  // ascending, each once

// "broadcast of 4096 bytes from rank 0 (version 7)"
std::string describe_operation(const NcclOperation& operation);
// Whom an operation of rank `rank` waits for, as far as it is known there: "rank 0, rank 2".
std::string awaited_ranks(const NcclOperation& operation, int rank);

Result<void> check_operation(const NcclOperation& operation, const NcclEpoch& epoch);

Error refusal(const std::string& what, const std::string& why);  // kInvalid
// That NCCL refused a call or reports a failure: "<attempt>: ncclSend: invalid usage (…)".
Error nccl_failure(const NcclApi& api, const char* function, NcclResult result, NcclApi::Comm comm,
                   const std::string& attempt);

std::string text_of_seconds(Duration duration);  // "2.5 s"

}  // namespace tandem::runtime
