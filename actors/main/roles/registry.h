// All roles of training. A further role is a source beside this one and a line in registry.cc.
#pragma once

#include <span>

#include "actors/main/roles/role_entry.h"

namespace tandem::app {

std::span<const RoleEntry> role_entries();               // in the order in which actors are placed
const RoleEntry* find_role(const messages::Role& role);  // nullptr: no role of training

}  // namespace tandem::app
