// The figures of a step, from what each rank summed over the items that it computed.
#pragma once

#include <cstddef>

#include "actors/learner/gang.h"
#include "actors/learner/objective.h"
#include "actors/messages/learner.h"

namespace tandem::actors {

// Adds up all ranks' sums, and so is called by all. `loss` is the mean of the updates', all others
// are means over tokens, or maxima; those of a term that the loss does not have stay empty. The
// error is the gang's.
Result<void> report_objective(Gang& gang, const AlgorithmConfig& config, const Objective& objective,
                              std::size_t updates, StepReport& report);

}  // namespace tandem::actors
