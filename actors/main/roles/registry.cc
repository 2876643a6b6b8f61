#include "actors/main/roles/registry.h"

#include <algorithm>

#include "actors/main/roles/learner_role.h"
#include "actors/main/roles/reward_role.h"
#include "actors/main/roles/rollout_role.h"

namespace tandem::app {

std::span<const RoleEntry> role_entries() {
  static const RoleEntry kEntries[] = {rollout_role(), learner_role(), reward_role()};
  return kEntries;
}

const RoleEntry* find_role(const messages::Role& role) {
  const auto entries = role_entries();
  const auto found = std::ranges::find(entries, role, &RoleEntry::role);
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace tandem::app
