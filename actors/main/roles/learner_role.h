// The role `learner`: the gang that trains, in LearnerActor and followers.
#pragma once

#include "actors/main/roles/role_entry.h"

namespace tandem::app {

RoleEntry learner_role();

}  // namespace tandem::app
