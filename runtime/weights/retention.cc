#include "runtime/weights/retention.h"

#include <algorithm>

namespace tandem::weights {

std::optional<std::size_t> place_to_reuse(std::span<const VersionPlace> places,
                                          std::optional<PolicyVersion> retained,
                                          PolicyVersion publishing) {
  std::optional<PolicyVersion> newest;
  for (const VersionPlace& place : places) newest = std::max(newest, place.version);
  std::optional<std::size_t> lowest;
  std::optional<std::size_t> ahead;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].in_use) continue;
    if (!places[i].version) return i;
    const PolicyVersion version = *places[i].version;
    const bool kept = version == newest || (retained && version >= *retained);
    if (!kept && (!lowest || version < *places[*lowest].version)) lowest = i;
    // `kept` does not restrict this choice: where all places are retained, a successor that went
    // back to a checkpoint could not publish otherwise.
    if (version > publishing && (!ahead || version > *places[*ahead].version)) ahead = i;
  }
  return lowest ? lowest : ahead;
}

}  // namespace tandem::weights
