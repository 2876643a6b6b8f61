#include "scheduler/fleet/version_supply.h"

#include <algorithm>

namespace tandem::scheduler {

namespace {

// Version 0 is the first that a checkpoint has.
PolicyVersion oldest_held(const SupplyState& state) {
  return {std::max<std::int64_t>(0, state.next.value - state.older_held)};
}

}  // namespace

VersionSupply supply_of(PolicyVersion version, const SupplyState& state) {
  if (state.offered.contains(version)) return VersionSupply::kOffered;
  if (version.value > state.next.value) return VersionSupply::kRepeated;
  return version < oldest_held(state) ? VersionSupply::kLost : VersionSupply::kHeld;
}

PolicyVersion oldest_to_be_had(const SupplyState& state) {
  const PolicyVersion held = oldest_held(state);
  return state.offered.empty() ? held : std::min(held, *state.offered.begin());
}

}  // namespace tandem::scheduler
