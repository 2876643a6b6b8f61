// How a run's fleet stands: what its learner waits for, which is summed (fleet_window.h), and what
// the rates predict of it (scheduler/fleet/fleet_gap.h).
#pragma once

#include <cstdint>
#include <optional>

#include "actors/exchange/turn.h"
#include "scheduler/fleet/fleet_gap.h"
#include "scheduler/fleet/work_limits.h"

namespace tandem::exchange {

// Call it after each decision: the learner waits for this until the next one, and as long an
// evaluation is generated or none is.
void note_wait(Turn& turn);

// The rollouts that are up and do not drain.
std::int64_t rollouts_at_work(const RunView& view);

// The keys of the job that bound what its rollouts have at once.
scheduler::WorkLimits work_limits_of(const ExchangeConfig& config);

// `rates` are those of view.seen.fleet; nullopt where they are not enough for a prediction.
std::optional<scheduler::FleetGap> gap_of(const RunView& view,
                                          const std::optional<scheduler::FleetRates>& rates);

}  // namespace tandem::exchange
