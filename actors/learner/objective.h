// The loss of a micro-batch as a function of its log-probabilities and entropies, and its gradient:
// gathers each item's operands from the batch and calls the fused policy_loss operator, which has
// the formulas. All of it is in the host's memory: a few numbers for each token.
//
// With one optimizer step per batch the proximal policy of the decoupled loss is the policy that
// the step starts with, and the training forward computes its log-probabilities: bypass_mode =
// false costs no second pass (DE-1 makes a recomputation equal to the bit).
//
// M items (completion tokens) of one micro-batch.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/learner/advantage.h"
#include "actors/learner/learner_config.h"
#include "actors/learner/packing.h"
#include "actors/learner/train_batch.h"
#include "runtime/device/stream.h"

namespace tandem::actors {

// Sums over the items of a rank's micro-batches, and after Gang::sum of all ranks; in double.
struct ObjectiveSums {
  double loss = 0;
  double tokens = 0;
  double clipped = 0;
  double kl_k1 = 0;  // proximal - current
  double entropy = 0;
  double logprob_diff = 0;           // |current - behaviour|
  double tokens_at_staleness_0 = 0;  // of trajectories that are all of this step's version
  auto fields() {
    return std::array{
        &loss, &tokens, &clipped, &kl_k1, &entropy, &logprob_diff, &tokens_at_staleness_0};
  }
};

class Objective {
 public:
  Objective(const AlgorithmConfig& config, std::int64_t items_max);

  // Borrows both until the next call of begin().
  void begin(const TrainBatch& batch, const BatchAdvantages& advantages);

  struct Inputs {
    std::span<const float> logprob;    // [M] of the policy, now
    std::span<const float> entropy;    // [M]
    std::span<const float> reference;  // [M] of the reference; empty without use_kl_loss
  };
  struct Gradient {
    std::span<const float> dlogprob;  // [M]
    std::span<const float> dentropy;  // [M]; empty without entropy_coeff
  };
  // On a CPU's stream. Valid until the next call. Adds to sums(), and to diff_max_at_staleness_0().
  Gradient evaluate(const runtime::Stream& stream, const MicroBatch& batch, const Inputs& inputs);

  const ObjectiveSums& sums() const { return sums_; }
  double diff_max_at_staleness_0() const { return diff_max_at_staleness_0_; }

 private:
  void gather(const MicroBatch& batch);
  void compare(const MicroBatch& batch, std::span<const float> logprob);

  const AlgorithmConfig config_;
  const BatchAdvantages* advantages_ = nullptr;
  StepId step_;
  std::vector<const TrainTrajectory*> trajectories_;  // of the batch, in order
  std::vector<float> behaviour_, advantage_, weight_, importance_, dlogprob_, dentropy_;
  ObjectiveSums sums_;
  double diff_max_at_staleness_0_ = 0;
};

}  // namespace tandem::actors
