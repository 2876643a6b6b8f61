// Forward, loss and backward of micro-batches, one after another: what one rank computes of a step,
// before gradients are summed over ranks. Owns the decoder's memory; borrows weights and gradients.
//
// Weights, gradients and streams are of the device that make() was given. Log-probabilities come to
// the host, which computes the loss from them whatever the device.
//
// Gradients are added (+=) in the order of the calls, so equal micro-batches give equal bits.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "actors/learner/objective.h"
#include "actors/model/decoder.h"
#include "actors/model/weights.h"
#include "runtime/device/arena.h"

namespace tandem::actors {

class LossPass {
 public:
  // `beat` (may be empty) is called after each piece of work. The error is want of memory.
  static Result<LossPass> make(const ModelConfig& model, const TrainerConfig& config,
                               runtime::DeviceKind device, std::function<void()> beat);

  struct Models {
    const Weights& policy;     // kTraining
    const Weights* reference;  // null: no KL
  };

  // Either may be empty.
  struct Hooks {
    WeightsNeeded needed;        // the policy's: for the first micro-batch that needs new weights
    GradientsFinished finished;  // for the last one, after which no gradient changes any more
  };

  // The policy loss: begin() a batch, then add() its micro-batches; objective() has the sums.
  // Of micro-batches without any gradient (BatchAdvantages::learns) observe() adds to the sums
  // alone; the policy's weights are all there.
  //
  // A batch of several updates is begun once: after an optimizer step call updated(). Where
  // needs_preparation() says so, prepare() comes first for every micro-batch of the plan, at the
  // weights before the first update; weigh() then brings the advantages that kl_penalties() change.
  void begin(const TrainBatch& batch, const BatchAdvantages& advantages);
  bool needs_preparation(std::int64_t updates) const;
  void prepare(const runtime::Stream& stream, const Models& models, const MicroBatch& batch);
  std::vector<float> kl_penalties() const { return objective_.kl_penalties(); }
  void weigh(const BatchAdvantages& advantages) { objective_.weigh(advantages); }
  void updated() { objective_.updated(); }
  void add(const runtime::Stream& stream, const Models& models, const MicroBatch& batch,
           const runtime::Arena& gradients, const Hooks& hooks = {});
  void observe(const runtime::Stream& stream, const Models& models, const MicroBatch& batch);
  const Objective& objective() const { return objective_; }
  // The policy's log-probabilities [M] of the micro-batch added last.
  std::span<const float> last_logprobs() const { return last_logprobs_; }

  // The supervised loss -(sum of log p) / tokens_total of all items, at temperature 1; returns this
  // micro-batch's -(sum of log p).
  double add_supervised(const runtime::Stream& stream, const Weights& policy,
                        const MicroBatch& batch, std::int64_t tokens_total,
                        const runtime::Arena& gradients, const Hooks& hooks = {});

  struct Score {                // sums over the sequences of a micro-batch, at temperature 1
    double probability = 0;     // that sampling gives exactly the completion
    double minus_log_prob = 0;  // of its tokens
    double tokens = 0;
  };
  Score score(const runtime::Stream& stream, const Weights& policy, const MicroBatch& batch);

 private:
  LossPass(const TrainerConfig& config, TrainDecoder decoder, std::function<void()> beat);
  void beat() const;
  Objective::Gradient evaluate(const runtime::Stream& stream, const Models& models,
                               const MicroBatch& batch, const WeightsNeeded& needed);

  TrainDecoder decoder_;
  Objective objective_;
  AlgorithmConfig config_;
  bool prepared_ = false;  // since begin()
  std::function<void()> beat_;
  std::vector<float> logprob_, entropy_, reference_logprob_;  // [items_max]
  std::span<const float> last_logprobs_;
};

}  // namespace tandem::actors
