// The way back from exchange::rates_json(). Pure.
#pragma once

#include <optional>

#include "runtime/base/json.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::app {

// nullopt where `value` is no such object, or one without a step or a rollout. Fields that are
// missing keep their defaults.
std::optional<scheduler::FleetRates> rates_in(const nlohmann::json& value);

}  // namespace tandem::app
