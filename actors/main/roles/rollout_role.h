// The role `rollout`: the engine that generates, in RolloutActor.
#pragma once

#include "actors/main/roles/role_entry.h"

namespace tandem::app {

RoleEntry rollout_role();

}  // namespace tandem::app
