#include "runtime/weights/retention.h"

#include <algorithm>

namespace tandem::weights {

std::optional<std::size_t> slot_to_reuse(std::span<const VersionSlot> slots,
                                         std::optional<PolicyVersion> retained,
                                         PolicyVersion publishing) {
  std::optional<PolicyVersion> newest;
  for (const VersionSlot& slot : slots) newest = std::max(newest, slot.version);
  std::optional<std::size_t> lowest;
  std::optional<std::size_t> ahead;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].in_use) continue;
    if (!slots[i].version) return i;
    const PolicyVersion version = *slots[i].version;
    const bool kept = version == newest || (retained && version >= *retained);
    if (!kept && (!lowest || version < *slots[*lowest].version)) lowest = i;
    // `kept` does not restrict this choice: where all slots are retained, a successor that went
    // back to a checkpoint could not publish otherwise.
    if (version > publishing && (!ahead || version > *slots[*ahead].version)) ahead = i;
  }
  return lowest ? lowest : ahead;
}

}  // namespace tandem::weights
