// Published versions whose bytes a rollout found damaged. Such a version counts as lost, and is
// published again by the learner that holds it (publications.h).
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// A rollout that finds versions damaged so often in a row is started anew: the learner has written
// them again meanwhile, so the memory or the network of the rollout's host may be at fault.
inline constexpr int kDamagedMax = 3;

void take(Turn& turn, const messages::VersionDamaged& damaged);

}  // namespace tandem::exchange
