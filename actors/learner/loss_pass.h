// Forward, loss and backward of micro-batches, one after another: all that one rank computes of a
// step before gradients are summed over ranks. Owns the decoder's memory; borrows weights and
// gradients for each call.
//
// Weights, gradients and streams are those of the device that make() was given. Log-probabilities
// come to the host, which computes the loss from them on every kind of device.
//
// Gradients are added (+=) in the order of the calls, so equal micro-batches give equal bits. Used
// by one thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "actors/learner/objective.h"
#include "actors/model/decoder.h"
#include "actors/model/weights.h"
#include "runtime/device/arena.h"

namespace tandem::learner {

class LossPass {
 public:
  // `beat` (may be empty) is called after each piece of work, so that a long step shows progress.
  // The error means too little memory.
  static Result<LossPass> make(const model::ModelConfig& model, const TrainerConfig& config,
                               device::DeviceKind device, std::function<void()> beat);

  struct Models {
    const model::Weights& policy;     // not kInference: backward reads it too
    const model::Weights* reference;  // null: no KL
  };

  // The decoder's hooks (decoder.h). Either may be empty.
  struct Hooks {
    model::WeightsNeeded needed;  // for the first micro-batch that reads the policy's new weights
    model::GradientsFinished finished;  // for the last micro-batch that changes gradients
  };

  // The policy loss. begin() starts a batch and add() computes one micro-batch of it; objective()
  // has the sums. For micro-batches without any gradient (BatchAdvantages::learns) observe() adds
  // to the sums of the observed part only; it requires that all of the policy's weights are there.
  //
  // A batch of several updates is begun once, and each optimizer step is followed by updated(). If
  // needs_preparation() says so, prepare() comes first for every micro-batch of the plan, at the
  // weights before the first update; where kl_penalties() change the advantages, weigh() brings the
  // new ones.
  void begin(const TrainBatch& batch, const BatchAdvantages& advantages);
  bool needs_preparation(std::int64_t updates) const;
  void prepare(const device::Stream& stream, const Models& models, const MicroBatch& batch,
               LossPart part);
  std::vector<float> kl_penalties() const { return objective_.kl_penalties(); }
  void weigh(const BatchAdvantages& advantages) { objective_.weigh(advantages); }
  void normalize_importance(double mean) { objective_.normalize_importance(mean); }
  void updated() { objective_.updated(); }
  void watch(TokenWatch* tokens) { objective_.watch(tokens); }
  bool watched() const { return objective_.watched(); }
  void add(const device::Stream& stream, const Models& models, const MicroBatch& batch,
           const device::Arena& gradients, const Hooks& hooks = {});
  void observe(const device::Stream& stream, const Models& models, const MicroBatch& batch);
  const Objective& objective() const { return objective_; }
  // The policy's log-probabilities [M] of the micro-batch added last.
  std::span<const float> last_logprobs() const { return last_logprobs_; }

  // The supervised loss -(sum of log p) / tokens_total of all items, at temperature 1; returns this
  // micro-batch's -(sum of log p).
  double add_supervised(const device::Stream& stream, const model::Weights& policy,
                        const MicroBatch& batch, std::int64_t tokens_total,
                        const device::Arena& gradients, const Hooks& hooks = {});

  struct Score {                // sums over the sequences of a micro-batch, at temperature 1
    double probability = 0;     // the probability that sampling gives exactly the completion
    double minus_log_prob = 0;  // the sum over the completion's tokens
    double tokens = 0;
  };
  Score score(const device::Stream& stream, const model::Weights& policy, const MicroBatch& batch);
  // The log-probabilities of all tokens but the first one, each given those before it, at
  // temperature 1.
  std::vector<float> next_logprobs(const device::Stream& stream, const model::Weights& policy,
                                   std::span<const std::int32_t> tokens);

 private:
  LossPass(const TrainerConfig& config, model::TrainDecoder decoder, std::function<void()> beat);
  void beat() const;
  Objective::Gradient evaluate(const device::Stream& stream, const Models& models,
                               const MicroBatch& batch, const model::WeightsNeeded& needed,
                               LossPart part);

  model::TrainDecoder decoder_;
  Objective objective_;
  AlgorithmConfig config_;
  float temperature_;
  bool prepared_ = false;  // since begin()
  std::function<void()> beat_;
  std::vector<float> logprob_, entropy_, reference_logprob_;  // [items_max]
  std::span<const float> last_logprobs_;
};

// The hooks of one of `all` micro-batches of a step: the first one asks for weights, the last one
// ends gradients.
LossPass::Hooks hooks_of(const MicroBatch& batch, const std::vector<MicroBatch>& all,
                         const LossPass::Hooks& hooks);

// Calls the hooks once for a rank without a micro-batch, whose part in the exchange is still
// needed.
void take_no_part(const LossPass::Hooks& hooks, const device::Arena& gradients);

}  // namespace tandem::learner
