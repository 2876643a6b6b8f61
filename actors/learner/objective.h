// The loss of a micro-batch as a function of its log-probabilities and entropies, and its gradient.
// Objective gathers each item's operands from the batch and calls the fused policy_loss operator,
// which has the formulas. All of its data is in host memory: a few numbers for each token.
//
// The proximal policy of the decoupled loss (bypass_mode = false) is the policy that a batch's
// first update starts with. With one update per batch the training forward computes its
// log-probabilities (DE-1 makes a recomputation equal to the bit). With several updates, or with KL
// in the reward, they are computed and kept before the first update.
//
// Differences from the engine's log-probabilities are taken at the weights before the first update:
// over the whole batch where log-probabilities are kept, else over the items that this update
// computes.
//
// Sums over groups that learn and over those that are computed for metrics alone are kept apart,
// because the latter may be a sample (observed_groups.h).
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
#include "actors/learner/rejection.h"
#include "actors/learner/token_store.h"
#include "actors/learner/token_watch.h"
#include "actors/learner/train_batch.h"
#include "runtime/device/stream.h"

namespace tandem::learner {

// Sums over the items of a rank's micro-batches, and after Gang::sum of all ranks; in double.
struct ObjectiveSums {
  double loss = 0;
  // Tokens that weigh in the loss. This sum and those up to `catastrophic` count each token, or
  // completion, once per update.
  double tokens = 0;
  double clipped = 0;
  double dual_clipped = 0;
  double clipped_low = 0;   // by the lower bound of the ratio
  double kl_k1 = 0;         // proximal - current
  double reference_kl = 0;  // as kl_loss_type estimates it
  double entropy = 0;
  double importance = 0;
  double importance_squares = 0;  // both before tokens are rejected
  double rejected = 0;            // by rollout_rs (rejection.h); the next four likewise
  double sequences = 0, sequences_rejected = 0, sequences_vetoed = 0, catastrophic = 0;
  double logprob_diff = 0;  // |current - behaviour| before the first update
  double compared = 0;      // tokens of that
  // The part of `compared` in trajectories all of this step's version.
  double tokens_at_staleness_0 = 0;
  auto fields() {
    return std::array{&loss,
                      &tokens,
                      &clipped,
                      &dual_clipped,
                      &clipped_low,
                      &kl_k1,
                      &reference_kl,
                      &entropy,
                      &importance,
                      &importance_squares,
                      &rejected,
                      &sequences,
                      &sequences_rejected,
                      &sequences_vetoed,
                      &catastrophic,
                      &logprob_diff,
                      &compared,
                      &tokens_at_staleness_0};
  }
  // Adds the sums of a sample of which each token stands for so many. Only tokens_at_staleness_0
  // stays a count of tokens that were computed.
  void add_sample(ObjectiveSums sample, double tokens_per_token);
};

// Which sums a micro-batch belongs to.
enum class LossPart : std::uint8_t { kLearning, kObserved };

class Objective {
 public:
  // A micro-batch has at most `items_max` items; memory for them is allocated here.
  Objective(const AlgorithmConfig& config, std::int64_t items_max);

  // Starts a batch with empty sums. Borrows both arguments until the next begin().
  void begin(const TrainBatch& batch, const BatchAdvantages& advantages);
  // Replaces the advantages of the batch; borrowed in the same way.
  void weigh(const BatchAdvantages& advantages) { advantages_ = &advantages; }
  void updated() {  // an optimizer step was taken
    before_first_update_ = false;
    ++watch_.update;
  }
  // While it is on, `tokens` gets the figures of every completion that is evaluated, in each
  // update; from the next begin() on. `tokens` outlives this object.
  void watch(TokenWatch* tokens) { watch_.tokens = tokens; }
  bool watched() const { return watch_.tokens != nullptr && watch_.tokens->on; }

  // Keep the log-probabilities [M] of a micro-batch before the first update: those of the policy,
  // and those of the reference.
  void keep_proximal(const MicroBatch& micro, std::span<const float> logprob, LossPart part);
  void keep_reference(const MicroBatch& micro, std::span<const float> logprob);
  // The importance weights of the micro-batches that were kept: their sum, and of how many. With
  // ImportanceLevel::kSequence a completion counts once.
  struct KeptImportance {
    double sum = 0, count = 0;
  };
  const KeptImportance& kept_importance() const { return correction_.kept; }
  // Importance weights are divided by `mean` from here to the next begin(), after they have been
  // counted in sums().
  void normalize_importance(double mean) { correction_.mean = mean; }
  // kl_in_reward_coef times the estimated KL of each completion token whose reference was kept, 0
  // for the others; [sum T] in batch order. In bypass mode the behaviour policy is the proximal.
  std::vector<float> kl_penalties() const;

  struct Inputs {
    std::span<const float> logprob;    // [M] of the current policy
    std::span<const float> entropy;    // [M]
    std::span<const float> reference;  // [M] of the reference; empty without use_kl_loss, or kept
  };
  struct Gradient {
    std::span<const float> dlogprob;  // [M]
    std::span<const float> dentropy;  // [M]; empty without entropy_coeff
  };
  // Computes the gradient of a micro-batch on a CPU's stream. The result is valid until the next
  // call. Adds to the sums of the part, diff_max_at_staleness_0() and ratio_max().
  Gradient evaluate(const device::Stream& stream, const MicroBatch& batch, const Inputs& inputs,
                    LossPart part = LossPart::kLearning);

  // The sums of this rank alone; report_objective() adds up the ranks. sums() are of the groups
  // that learn.
  const ObjectiveSums& sums() const { return sums_; }
  const ObjectiveSums& observed() const { return observed_; }
  double diff_max_at_staleness_0() const { return most_.diff_at_staleness_0; }
  double ratio_max() const { return most_.ratio; }  // the largest current / proximal of a token

 private:
  void gather(const MicroBatch& batch);
  // The operands of the loss besides those that gather() fills.
  struct Operands {
    const Inputs& inputs;
    device::TensorView proximal, importance, reference;
  };
  void note_tokens(const MicroBatch& batch, const Operands& operands);
  void compare(const MicroBatch& batch, std::span<const float> logprob, ObjectiveSums& sums);
  void weigh_importance(const device::Stream& stream, const MicroBatch& batch,
                        const device::TensorView& proximal);
  void keep_importance(const MicroBatch& micro, std::span<const float> logprob);
  void count_importance(std::size_t items, ObjectiveSums& sums);
  device::TensorView importance_of(const device::Stream& stream, const MicroBatch& batch,
                                   std::span<const float> current,
                                   const device::TensorView& proximal, ObjectiveSums& sums);
  ObjectiveSums& sums_of(LossPart part) { return part == LossPart::kLearning ? sums_ : observed_; }

  const AlgorithmConfig config_;
  const BatchAdvantages* advantages_ = nullptr;
  StepId step_;
  std::vector<const TrainTrajectory*> trajectories_;  // the batch's trajectories, in order
  std::vector<float> behaviour_, advantage_, weight_, importance_, dlogprob_, dentropy_;
  std::vector<float> proximal_, reference_;  // [items_max] of the micro-batch, where kept
  TokenStore kept_proximal_, kept_reference_;
  struct Correction {
    const std::vector<RejectionCriterion> criteria;
    KeptImportance kept = {};
    double mean = 1;  // of the batch's importance weights, by which they are divided
  } correction_;
  bool before_first_update_ = true;
  ObjectiveSums sums_, observed_;
  struct Most {
    double diff_at_staleness_0 = 0, ratio = 0;
  } most_;
  struct Watch {
    TokenWatch* tokens = nullptr;
    std::vector<float> loss;  // [items_max] while somebody looks
    std::int64_t update = 0;  // of the batch
  } watch_;
};

}  // namespace tandem::learner
