// The lines that a committed step leaves in metrics.jsonl and samples.jsonl.
#pragma once

#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::actors {

// `batch` has the groups of the step, in the order of training.
void write_metrics(Turn& turn, const StepCommitted& committed, const std::vector<GroupId>& batch);
// Of the first groups of the batch, as many rows as samples.per_step says.
void write_samples(Turn& turn, const StepCommitted& committed, const std::vector<GroupId>& batch);

}  // namespace tandem::actors
