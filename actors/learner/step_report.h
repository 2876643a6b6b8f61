// Computes the figures of a step from the sums of all ranks.
#pragma once

#include <cstddef>

#include "actors/learner/gang.h"
#include "actors/learner/objective.h"
#include "actors/learner/observed_groups.h"
#include "actors/messages/learner.h"

namespace tandem::learner {

// Adds up the sums of all ranks, so every rank must call this function. Sets the figures of
// `report` that come from the objective: `loss` is the mean over the updates, the others are means
// over tokens or maxima, and figures of a term that the loss does not have stay empty, as do all
// of them where no token counts. Where a
// sample stands for the groups that do not learn, means over tokens are estimates for all tokens of
// the batch. The error is that of the gang.
struct ReportOf {
  const AlgorithmConfig& config;
  const Objective& objective;
  const ObservedGroups& observed;
  std::size_t updates = 1;
};
Result<void> report_objective(Gang& gang, const ReportOf& of, messages::StepReport& report);

}  // namespace tandem::learner
