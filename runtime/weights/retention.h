// Decides which of a publisher's slots the next version goes to: a pure function of the versions in
// the slots (WT-2).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "runtime/base/ids.h"

namespace tandem::weights {

struct VersionSlot {
  std::optional<PolicyVersion> version;  // none: no version is offered there
  bool in_use = false;                   // being copied by a subscriber
};

// The index of the slot to overwrite; none if all slots are in use or kept. Kept are the newest
// version and all from `retained` on. The choice is, in this order: an empty slot; the lowest
// version that is not kept; the highest version later than `publishing`. The last kind belongs to a
// publisher that went back to a checkpoint: it will come to those versions again, so they may go
// although they are kept.
std::optional<std::size_t> slot_to_reuse(std::span<const VersionSlot> slots,
                                         std::optional<PolicyVersion> retained,
                                         PolicyVersion publishing);

}  // namespace tandem::weights
