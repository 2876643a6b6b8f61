// Which decode steps of a batch read the same keys and values: what attention is told of it
// (kernels/ops/attention.h, SharedPrefix). Internal to decoder.h; a function of values.
#pragma once

#include <cstdint>
#include <span>

#include "actors/model/decoder.h"
#include "kernels/ops/attention.h"

namespace tandem::actors {

// Splits that are shared at most: 4096 positions. Of longer prefixes these are.
inline constexpr std::int64_t kSharedSplitsMax = 16;

// Of slices of one token each; `shared` has room for as many, and returns whether any shares.
// Neighbours join a leader as long as they have all of the prefix that its first follower has.
bool find_shared(std::span<const PagedSlice> slices, std::int32_t page_positions,
                 std::span<kernels::SharedPrefix> shared);

}  // namespace tandem::actors
