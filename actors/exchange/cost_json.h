// The object `cost` of result.json and of a job in the API.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "actors/messages/exchange.h"

namespace tandem::exchange {

nlohmann::json cost_json(const messages::CostStatus& cost);

}  // namespace tandem::exchange
