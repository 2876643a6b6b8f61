// All roles of training: a source beside this one has the entry of each (role_entry.h), and the
// list here names it.
#pragma once

#include <span>

#include "actors/main/roles/role_entry.h"

namespace tandem::app {

RoleEntry rollout_role();  // the engines that generate
RoleEntry learner_role();  // the gang that trains
RoleEntry reward_role();   // the actors that score

// In the order in which actors are placed.
inline std::span<const RoleEntry> role_entries() {
  static const RoleEntry kEntries[] = {rollout_role(), learner_role(), reward_role()};
  return kEntries;
}

const RoleEntry* find_role(const messages::Role& role);  // nullptr: no role of training

}  // namespace tandem::app
