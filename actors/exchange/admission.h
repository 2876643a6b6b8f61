// A group's trip begins: the next prompt becomes a group when the budget, or fixed_lag's next slot,
// allows it. The trip goes on in generation.h, scoring.h, training.h and checkpoints.h.
#pragma once

#include <cstdint>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// Admits groups for as long as the answer is yes.
void admit(Turn& turn);

// The seed with which a group's trajectories draw: under fixed_lag it depends on the slot alone,
// else on the group's number.
std::uint64_t seed_of(const ExchangeConfig& config, GroupId group, const GroupFacts& facts);

}  // namespace tandem::exchange
