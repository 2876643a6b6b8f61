// Which groups of a batch are computed for metrics alone. A group that does not learn has no part
// in the gradient, and most groups of an easy or a hard job are of this kind; a sample of them is
// enough for figures such as the entropy. Pure.
//
// A trajectory whose tokens do not count in the loss (AD-3) is in no such figure. A group of
// nothing else is never chosen.
//
//   OG-1  The choice depends on the seed, the step and on which groups learn or do not count, and
//         on nothing else: all ranks make the same one. It changes no weight.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/learner/advantage.h"
#include "actors/learner/train_batch.h"

namespace tandem::learner {

struct ObservedGroups {
  std::vector<bool> chosen;  // [B] of the groups that do not learn
  // How many tokens that count, of groups that do not learn, each of the chosen ones stands for.
  double tokens_per_token = 1;
  // The share of the batch's completion tokens that are computed: those of groups that learn, and
  // those of the chosen ones.
  double fraction = 1;
};

// Chooses the share `fraction` (0 … 1) of the groups that count and do not learn, rounded up.
ObservedGroups choose_observed(const TrainBatch& batch, const BatchAdvantages& advantages,
                               double fraction, std::uint64_t seed);

}  // namespace tandem::learner
