// The roles whose actors work under leases of the exchange: a row for each. A role's part is in a
// source of its own, which also takes the messages of its actors; what is the same for all of them
// is in workers.h.
#pragma once

#include "actors/exchange/evaluating.h"
#include "actors/exchange/generation.h"
#include "actors/exchange/scoring.h"
#include "actors/exchange/worker_role.h"

namespace tandem::exchange {

// In the order of a group's trip, which is that of a decision and of reports.
inline const WorkerRole kWorkerRoles[] = {
    {messages::Role::kRollout, "a rollout actor", lease_rollouts, evaluate_by_rollouts,
     hand_back_to_rollout, load_of_rollout},
    {messages::Role::kReward, "a reward actor", lease_rewards, evaluate_by_rewards, nullptr,
     load_of_reward},
};

}  // namespace tandem::exchange
