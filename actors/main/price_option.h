// The option --price of verbs that reckon with what devices cost.
#pragma once

#include <optional>

#include "actors/cli/options.h"
#include "scheduler/fleet/cost.h"

namespace tandem::app {

// Declares --price, which takes prices or a file of them. The value outlives `options`.
void add_price(cli::Options& options, std::optional<scheduler::Pricing>& prices);

}  // namespace tandem::app
