// The lines that a committed step leaves in metrics.jsonl and samples.jsonl, and what is said of
// numbers that found no room there.
#pragma once

#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// `batch` has the groups of the step, in the order of training.
void write_metrics(Turn& turn, const messages::StepCommitted& committed,
                   const std::vector<GroupId>& batch);
// Writes samples of the first groups of the batch, as many rows as samples.per_step says.
void write_samples(Turn& turn, const messages::StepCommitted& committed,
                   const std::vector<GroupId>& batch);

// Each says once per run, resumes included, that the file has reached its limit.
void take(Turn& turn, const SamplesAtLimit& reached);
void take(Turn& turn, const MetricsAtLimit& reached);
// Says what the run's record warns of.
void take(Turn& turn, const RecordWarned& warned);
// Says once that the reward's `extra` has more numbers than metrics have room for.
void tell_of_extras(Turn& turn);

}  // namespace tandem::exchange
