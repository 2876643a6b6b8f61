// Names the ranks that hold an epoch up, from the records of all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/collective/nccl_records.h"

namespace tandem::collective {

// Explains which ranks hold an epoch up. `by_rank[r]` is the snapshot of rank r, empty where none
// could be had. The text names the ranks that are behind: "rank 2 did not enter operation 5
// (broadcast of 4096 bytes), which rank 0, rank 1 entered". Empty where all are in the same
// operation. Meaningful for communicators whose ranks all take part in the same operations.
std::string explain_stall(std::span<const std::vector<NcclRecord>> by_rank, std::uint64_t epoch);

}  // namespace tandem::collective
