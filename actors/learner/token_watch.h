// The figures of single tokens, which training adds up and forgets: kept for a batch that somebody
// looks at (`tandem replay --dump-step`). A rank has those of the completions that it computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::learner {

// One completion in one update of its batch; T tokens. Values are the operands of the loss
// (kernels/ops/policy_loss.h) and its result.
struct WatchedCompletion {
  std::size_t trajectory = 0;  // its place in the batch
  std::int64_t update = 0;     // the optimizer step of the batch, from 0
  std::vector<float> logprobs, entropies, proximal, advantages, weights, losses;  // [T]
  std::vector<float> importance, reference;  // [T]; empty where the loss has no such term
};

// Read and written by a rank while it trains a batch, and by its owner between two batches.
struct TokenWatch {
  bool on = false;  // false: nothing is kept
  std::vector<WatchedCompletion> completions;
};

}  // namespace tandem::learner
