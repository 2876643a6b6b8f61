#include "actors/learner/loss_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::learner {

Result<LossPass> LossPass::make(const model::ModelConfig& model, const TrainerConfig& config,
                                device::DeviceKind device, std::function<void()> beat) {
  auto decoder = model::TrainDecoder::make(model, pack_limits(config), device);
  if (!decoder) return decoder.error();
  return LossPass(config, *std::move(decoder), std::move(beat));
}

LossPass::LossPass(const TrainerConfig& config, model::TrainDecoder decoder,
                   std::function<void()> beat)
    : decoder_(std::move(decoder)),
      objective_(config.algorithm, config.rows_max),
      config_(config.algorithm),
      temperature_(config.batch.temperature),
      beat_(std::move(beat)) {
  for (std::vector<float>* v : {&logprob_, &entropy_, &reference_logprob_})
    v->resize(static_cast<std::size_t>(config.rows_max));
}

void LossPass::beat() const {
  if (beat_) beat_();
}

void LossPass::begin(const TrainBatch& batch, const BatchAdvantages& advantages) {
  objective_.begin(batch, advantages);
  prepared_ = false;
}

// Whether log-probabilities at the weights before the first update must be computed beforehand.
// With one update its own forward computes them, unless the reward, or the mean of the batch's
// importance weights, already needs them.
bool LossPass::needs_preparation(std::int64_t updates) const {
  return config_.use_kl_in_reward || config_.rollout_is_batch_normalize ||
         (updates > 1 && (!config_.bypass_mode || config_.use_kl_loss));
}

void LossPass::prepare(const device::Stream& stream, const Models& models, const MicroBatch& batch,
                       LossPart part) {
  const model::PackedBatch packed = batch.view(temperature_);
  const std::span<float> logprob = std::span(logprob_).first(batch.items.size());
  if (models.reference) {
    decoder_.forward(stream, *models.reference, packed, logprob, {});
    objective_.keep_reference(batch, logprob);
    beat();
  }
  if (!config_.bypass_mode) {
    decoder_.forward(stream, models.policy, packed, logprob, {});
    objective_.keep_proximal(batch, logprob, part);
    beat();
  }
  prepared_ = true;
}

Objective::Gradient LossPass::evaluate(const device::Stream& stream, const Models& models,
                                       const MicroBatch& batch, const model::WeightsNeeded& needed,
                                       LossPart part) {
  const std::size_t items = batch.items.size();
  const model::PackedBatch packed = batch.view(temperature_);
  const std::span<float> logprob = std::span(logprob_).first(items);
  const std::span<float> entropy = std::span(entropy_).first(items);
  Objective::Inputs inputs{logprob, entropy, {}};
  if (config_.use_kl_loss && models.reference && !prepared_) {
    const std::span<float> reference = std::span(reference_logprob_).first(items);
    decoder_.forward(stream, *models.reference, packed, reference, {});
    inputs.reference = reference;
    beat();
  }
  decoder_.forward(stream, models.policy, packed, logprob, entropy, needed);
  last_logprobs_ = logprob;
  beat();
  // The objective is host arithmetic, also where the decoder runs on a GPU.
  const device::Stream host{.pool = stream.pool};
  return objective_.evaluate(host, batch, inputs, part);
}

void LossPass::add(const device::Stream& stream, const Models& models, const MicroBatch& batch,
                   const device::Arena& gradients, const Hooks& hooks) {
  const Objective::Gradient gradient =
      evaluate(stream, models, batch, hooks.needed, LossPart::kLearning);
  decoder_.backward(stream, models.policy, batch.view(temperature_), gradient.dlogprob,
                    gradient.dentropy, gradients, hooks.finished);
  beat();
}

void LossPass::observe(const device::Stream& stream, const Models& models,
                       const MicroBatch& batch) {
  evaluate(stream, models, batch, {}, LossPart::kObserved);
}

double LossPass::add_supervised(const device::Stream& stream, const model::Weights& policy,
                                const MicroBatch& batch, std::int64_t tokens_total,
                                const device::Arena& gradients, const Hooks& hooks) {
  const model::PackedBatch packed = batch.view(1.0f);
  const std::span<float> logprob = std::span(logprob_).first(batch.items.size());
  decoder_.forward(stream, policy, packed, logprob, {}, hooks.needed);
  double loss = 0;
  for (const float l : logprob) loss -= static_cast<double>(l);
  // The derivative of the loss by every log-probability; the values themselves are no longer
  // needed.
  std::fill(logprob.begin(), logprob.end(), -1.0f / static_cast<float>(tokens_total));
  decoder_.backward(stream, policy, packed, logprob, {}, gradients, hooks.finished);
  beat();
  return loss;
}

LossPass::Score LossPass::score(const device::Stream& stream, const model::Weights& policy,
                                const MicroBatch& batch) {
  const std::span<float> logprob = std::span(logprob_).first(batch.items.size());
  decoder_.forward(stream, policy, batch.view(1.0f), logprob, {});
  Score score;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    double sum = 0;
    for (std::int32_t m = batch.sequence_begin[s]; m < batch.sequence_begin[s + 1]; ++m)
      sum += static_cast<double>(logprob[static_cast<std::size_t>(m)]);
    score.probability += std::exp(sum);
    score.minus_log_prob -= sum;
    score.tokens += batch.sequence_begin[s + 1] - batch.sequence_begin[s];
  }
  beat();
  return score;
}

std::vector<float> LossPass::next_logprobs(const device::Stream& stream,
                                           const model::Weights& policy,
                                           std::span<const std::int32_t> tokens) {
  std::vector<model::LogprobItem> items;
  for (std::size_t row = 0; row + 1 < tokens.size(); ++row)
    items.push_back({static_cast<std::int32_t>(row), tokens[row + 1]});
  const kernels::Segment segment{.begin = 0, .len = static_cast<std::int32_t>(tokens.size())};
  std::vector<float> logprobs(items.size());
  decoder_.forward(stream, policy,
                   {.tokens = tokens, .segments = std::span(&segment, 1), .items = items}, logprobs,
                   {});
  beat();
  return logprobs;
}

LossPass::Hooks hooks_of(const MicroBatch& batch, const std::vector<MicroBatch>& all,
                         const LossPass::Hooks& hooks) {
  return {.needed = &batch == &all.front() ? hooks.needed : nullptr,
          .finished = &batch == &all.back() ? hooks.finished : nullptr};
}

void take_no_part(const LossPass::Hooks& hooks, const device::Arena& gradients) {
  if (hooks.needed) hooks.needed(gradients.flat().elements());
  if (hooks.finished) hooks.finished(0);
}

}  // namespace tandem::learner
