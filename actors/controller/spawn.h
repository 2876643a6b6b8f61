// The order to start the process of a rank.
#pragma once

#include <cstdint>

#include "actors/controller/turn.h"

namespace tandem::controller {

// The rank has its place. `rank`: its number in the actor.
SpawnRankOn spawn_of(const JobRecord& job, const ActorRecord& actor, std::int32_t rank);

}  // namespace tandem::controller
