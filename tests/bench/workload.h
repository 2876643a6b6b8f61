// Prompts and training batches that several benchmarks compute.
#pragma once

#include <cstdint>
#include <string>

#include "actors/learner/train_batch.h"
#include "actors/model/tokenizer.h"

namespace tandem::bench {

// The quickstart's tokenizer, which has a token for each digit. Models have room for more tokens
// than it has.
model::Tokenizer tokenizer();
std::string digits(std::int64_t tokens, std::uint64_t seed);

struct BatchShape {
  std::int64_t groups, trajectories;  // trajectories in each group
  std::int64_t prompt, completion;    // tokens
  std::int64_t vocab;
};

// Random tokens below `vocab`, other ones in each step. Rewards alternate between 0 and 1 over the
// trajectories of the batch, and the behaviour policy gave all tokens the same probability.
learner::TrainBatch random_batch(StepId step, const BatchShape& shape);

}  // namespace tandem::bench
