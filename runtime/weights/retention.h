// Which place the next version goes to, as a pure function of what the places hold (WT-2).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "runtime/base/ids.h"

namespace tandem::runtime {

struct VersionPlace {
  std::optional<PolicyVersion> version;  // none: nothing is offered there
  bool in_use = false;                   // being copied by a subscriber
};

// The index of the place to overwrite, none if all are in use or kept. Kept are the newest version
// and all from `retained` on. In this order: an empty place; the lowest version that is not kept;
// the highest version later than `publishing`, which a successor that went back to a checkpoint
// will come to again.
std::optional<std::size_t> place_to_reuse(std::span<const VersionPlace> places,
                                          std::optional<PolicyVersion> retained,
                                          PolicyVersion publishing);

}  // namespace tandem::runtime
