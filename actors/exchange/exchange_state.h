// The exchange's record of one actor, and its record of one group besides the ledger's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "actors/messages/rollout.h"
#include "runtime/actor/ref.h"
#include "runtime/base/clock.h"
#include "scheduler/fleet/fixed_lag.h"

namespace tandem::actors {

struct ExchangeWorker {
  runtime::Address address;
  Time up;
  std::int64_t capacity = 0;  // trajectories (rollout) or groups (reward)
  std::set<GroupId> holding;
  std::optional<PolicyVersion> installed;
  PolicyVersion announced{-2};
  bool draining = false;
  RolloutStats stats;
};

struct ExchangeEntry {
  std::int64_t position = 0;
  std::uint64_t seed = 0;
  std::optional<scheduler::Slot> slot;
  std::optional<GroupHeader> header;
  std::vector<float> rewards;
  Time admitted;
};

}  // namespace tandem::actors
