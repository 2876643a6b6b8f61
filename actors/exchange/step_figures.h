// The lines that a committed step leaves in metrics.jsonl and samples.jsonl, and what is said of
// numbers that found no room there.
#pragma once

#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::actors {

// `batch` has the groups of the step, in the order of training.
void write_metrics(Turn& turn, const StepCommitted& committed, const std::vector<GroupId>& batch);
// Of the first groups of the batch, as many rows as samples.per_step says.
void write_samples(Turn& turn, const StepCommitted& committed, const std::vector<GroupId>& batch);

// Says it once in the run's whole life, whoever resumes it.
void take(Turn& turn, const SampleDropped& dropped);
// Says once that the reward's `extra` has more numbers than metrics have room for.
void tell_of_extras(Turn& turn);

}  // namespace tandem::actors
