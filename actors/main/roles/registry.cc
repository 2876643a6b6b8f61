#include "actors/main/roles/registry.h"

#include <algorithm>

namespace tandem::app {

const RoleEntry* find_role(const messages::Role& role) {
  const auto entries = role_entries();
  const auto found = std::ranges::find(entries, role, &RoleEntry::role);
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace tandem::app
