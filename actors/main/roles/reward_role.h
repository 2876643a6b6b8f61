// The role `reward`: the verifier that scores, in RewardActor.
#pragma once

#include "actors/main/roles/role_entry.h"

namespace tandem::app {

RoleEntry reward_role();

}  // namespace tandem::app
