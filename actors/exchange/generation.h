// Admitted groups become generated ones: each is leased to a rollout, which answers with a header
// or hands the group back. Comes after admission.h; scoring.h is next.
#pragma once

#include <string>
#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// Leases admitted groups, most urgent first, each to the rollout with most room.
void lease_rollouts(Turn& turn);
void hand_back_to_rollout(Turn& turn, const ActorId& who, std::vector<GroupId> groups);
messages::ActorLoad load_of_rollout(const RunView& view, const WorkerFacts& worker);

void take(Turn& turn, const messages::RolloutUp& up);

// `stored.payloads` are those payloads of the message that the store has.
void take(Turn& turn, GroupsGenerated stored);
void take(Turn& turn, const messages::Unservable& unservable);
void take(Turn& turn, const messages::EngineBroke& broke);

}  // namespace tandem::exchange
