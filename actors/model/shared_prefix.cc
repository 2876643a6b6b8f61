#include "actors/model/shared_prefix.h"

#include <algorithm>

namespace tandem::model {
namespace {

// How many positions before both new tokens lie in the same pages, rounded down to whole splits:
// attention works on whole splits only.
std::int32_t shared_positions(const PagedSlice& a, const PagedSlice& b,
                              std::int32_t page_positions) {
  const std::int64_t both = std::min({std::int64_t{a.position}, std::int64_t{b.position},
                                      kSharedSplitsMax * kernels::kSplitPositions});
  const auto whole = static_cast<std::size_t>(both / page_positions);
  std::size_t pages = 0;
  while (pages < whole && a.pages[pages] == b.pages[pages]) ++pages;
  const std::int64_t positions = static_cast<std::int64_t>(pages) * page_positions;
  return static_cast<std::int32_t>(positions - positions % kernels::kSplitPositions);
}

}  // namespace

bool find_shared(std::span<const PagedSlice> slices, std::int32_t page_positions,
                 std::span<kernels::SharedPrefix> shared) {
  bool any = false;
  for (std::size_t leader = 0, i = 0; i < slices.size(); ++i) {
    std::int32_t positions =
        i > leader ? shared_positions(slices[leader], slices[i], page_positions) : 0;
    const std::int32_t before = shared[leader].positions;
    // The first follower (i == leader + 1) sets the length of the run. A later slice with a longer
    // common prefix shares the run's length only; one with a shorter prefix begins a run of its
    // own.
    if (positions == 0 || (i > leader + 1 && positions < before)) {
      leader = i;
      positions = 0;
    } else if (i > leader + 1) {
      positions = before;
    }
    shared[leader].positions = positions;
    shared[i] = {.leader = static_cast<std::int32_t>(leader), .positions = positions};
    any |= positions > 0;
  }
  return any;
}

}  // namespace tandem::model
