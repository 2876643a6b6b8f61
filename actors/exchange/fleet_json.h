// The rates of a fleet as JSON, for result.json and the HTTP API, and as keys of metrics.jsonl.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scheduler/fleet/fleet_gap.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::exchange {

nlohmann::json rates_json(const scheduler::FleetRates& rates);
// The predicted figures alone: the measured ones are among the rates.
nlohmann::json predicted_json(const scheduler::FleetGap& gap);

// Sets `tandem/rollout_tokens_per_s/mean` …, of those that are measured.
void add_metrics(nlohmann::json& line, const scheduler::FleetRates& rates);

// The mean of the rollouts' install_fraction; 0 without rollouts.
double install_fraction(const scheduler::FleetRates& rates);

}  // namespace tandem::exchange
