// The lines that a committed step leaves in metrics.jsonl and samples.jsonl.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::actors {

void write_metrics(Turn& turn, const StepCommitted& committed);
// Of one group of the step, the first of its batch.
void write_samples(Turn& turn, const StepCommitted& committed, GroupId first);

}  // namespace tandem::actors
