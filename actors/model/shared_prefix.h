// Finds decode steps of a batch that read the same keys and values, so that attention can read them
// once for several sequences (SharedPrefix in kernels/ops/attention.h). Internal to decoder.h; a
// function of values.
#pragma once

#include <cstdint>
#include <span>

#include "actors/model/decoder.h"
#include "kernels/ops/attention.h"

namespace tandem::model {

// How many splits are shared at most: 4096 positions. Where a common prefix is longer, only these
// first positions are shared.
inline constexpr std::int64_t kSharedSplitsMax = 16;

// For slices of one token each, fills one entry of `shared` per slice and returns whether any slice
// shares. Only neighbours are compared, so the completions of a group must stand side by side to
// share. A slice joins the leader before it if it shares at least the prefix that the leader's
// first follower shares; else it becomes a leader itself.
bool find_shared(std::span<const PagedSlice> slices, std::int32_t page_positions,
                 std::span<kernels::SharedPrefix> shared);

}  // namespace tandem::model
