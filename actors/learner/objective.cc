// A micro-batch lists its items sequence by sequence, and knows for each sequence the trajectory's
// place in the batch. gather() uses these places to copy the operands of all items into flat
// arrays, on which the kernels work; nothing here depends on how the batch was cut into
// micro-batches.
//
// Maxima keep a NaN once one has occurred. std::max would drop it, and a report would then look
// healthy although a log-probability is broken.
#include "actors/learner/objective.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/policy_loss.h"
#include "runtime/base/check.h"

namespace tandem::learner {
namespace {

device::TensorView vector_view(std::span<const float> values) {
  return device::tensor(values.data(), {std::ssize(values)});
}

// The estimators of KlEstimate (policy_loss.h), of one token.
double estimated_kl(KlPenalty kind, double d) {
  switch (kind) {
    case KlPenalty::kKl:
      return d;
    case KlPenalty::kAbs:
      return std::abs(d);
    case KlPenalty::kMse:
      return 0.5 * d * d;
    case KlPenalty::kLowVarKl: {
      const double bounded = std::clamp(d, -20.0, 20.0);  // exp() stays finite, as in verl
      return std::min(std::exp(-bounded) + bounded - 1, double{kernels::kKlMax});
    }
  }
  CHECK(false);
  return 0;
}

}  // namespace

void ObjectiveSums::add_sample(ObjectiveSums sample, double tokens_per_token) {
  const double fresh = tokens_at_staleness_0 + sample.tokens_at_staleness_0;
  const auto own = fields(), others = sample.fields();
  for (std::size_t i = 0; i < own.size(); ++i) *own[i] += tokens_per_token * *others[i];
  tokens_at_staleness_0 = fresh;
}

Objective::Objective(const AlgorithmConfig& config, std::int64_t items_max)
    : config_(config), correction_{.criteria = rejection_criteria(config)} {
  for (std::vector<float>* v : {&behaviour_, &advantage_, &weight_, &importance_, &dlogprob_,
                                &dentropy_, &proximal_, &reference_})
    v->resize(static_cast<std::size_t>(items_max));
}

void Objective::begin(const TrainBatch& batch, const BatchAdvantages& advantages) {
  advantages_ = &advantages;
  step_ = batch.step;
  trajectories_.clear();
  for (const BatchGroup& group : batch.groups)
    for (const TrainTrajectory& trajectory : group.trajectories)
      trajectories_.push_back(&trajectory);
  kept_proximal_.reset(batch);
  kept_reference_.reset(batch);
  correction_.kept = {};
  correction_.mean = 1;
  before_first_update_ = true;
  sums_ = observed_ = {};
  watch_.update = 0;
  watch_.loss.resize(watched() ? behaviour_.size() : 0);
  most_ = {};
}

void Objective::keep_proximal(const MicroBatch& micro, std::span<const float> logprob,
                              LossPart part) {
  gather(micro);
  compare(micro, logprob, sums_of(part));
  kept_proximal_.put(micro, logprob);
  if (config_.rollout_is_batch_normalize) keep_importance(micro, logprob);
}

void Objective::keep_reference(const MicroBatch& micro, std::span<const float> logprob) {
  kept_reference_.put(micro, logprob);
}

std::vector<float> Objective::kl_penalties() const {
  std::vector<float> penalties(kept_reference_.tokens(), 0.0f);
  for (std::size_t i = 0; i < trajectories_.size(); ++i) {
    const std::span<const float> reference = kept_reference_.of(i);
    if (reference.empty()) continue;
    // In bypass mode the engine's own log-probabilities are those of the proximal policy.
    const std::span<const float> proximal = config_.bypass_mode
                                                ? std::span<const float>(trajectories_[i]->logprobs)
                                                : kept_proximal_.of(i);
    float* out = &penalties[kept_reference_.begin_of(i)];
    for (std::size_t t = 0; t < reference.size(); ++t)
      out[t] = static_cast<float>(
          config_.kl_ctrl.kl_coef *
          estimated_kl(config_.kl_penalty,
                       static_cast<double>(proximal[t]) - static_cast<double>(reference[t])));
  }
  return penalties;
}

// Copies behaviour, advantage and weight of every item from the batch.
void Objective::gather(const MicroBatch& batch) {
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const std::size_t index = static_cast<std::size_t>(batch.sequences[s]);
    const std::size_t begin = static_cast<std::size_t>(batch.sequence_begin[s]);
    const std::size_t end = static_cast<std::size_t>(batch.sequence_begin[s + 1]);
    const std::vector<float>& logprobs = trajectories_[index]->logprobs;
    CHECK(logprobs.size() == end - begin);
    std::copy(logprobs.begin(), logprobs.end(), behaviour_.begin() + batch.sequence_begin[s]);
    const float* of_token =
        advantages_->of_token.empty()
            ? nullptr
            // TokenStore has the offsets of a trajectory's tokens, also where it holds no values.
            : &advantages_->of_token[kept_reference_.begin_of(index)];
    for (std::size_t m = begin; m < end; ++m) {
      advantage_[m] = of_token ? of_token[m - begin] : advantages_->advantage[index];
      weight_[m] = advantages_->token_weight[index];
    }
  }
}

// Adds the differences between the policy's log-probabilities and the engine's (NT-2). Requires
// that gather() has filled behaviour_ for this micro-batch.
void Objective::compare(const MicroBatch& batch, std::span<const float> logprob,
                        ObjectiveSums& sums) {
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const TrainTrajectory& trajectory =
        *trajectories_[static_cast<std::size_t>(batch.sequences[s])];
    const bool fresh = trajectory.oldest.value == step_.value;
    for (std::int32_t i = batch.sequence_begin[s]; i < batch.sequence_begin[s + 1]; ++i) {
      const std::size_t m = static_cast<std::size_t>(i);
      const double difference =
          std::abs(static_cast<double>(logprob[m]) - static_cast<double>(behaviour_[m]));
      sums.logprob_diff += difference;
      sums.compared += 1;
      if (!fresh) continue;
      sums.tokens_at_staleness_0 += 1;
      // The condition is written so that a NaN is taken and stays.
      double& most = most_.diff_at_staleness_0;
      if (!std::isnan(most) && !(difference <= most)) most = difference;
    }
  }
}

// Sets importance_ of every item. Requires that gather() has been called for the micro-batch.
void Objective::weigh_importance(const device::Stream& stream, const MicroBatch& batch,
                                 const device::TensorView& proximal) {
  const std::size_t items = batch.items.size();
  kernels::importance_weights(
      stream, {.level = *config_.rollout_is,
               .threshold = static_cast<float>(config_.rollout_is_threshold),
               .proximal = proximal,
               .behaviour = vector_view(std::span(behaviour_).first(items)),
               .weight = vector_view(std::span(weight_).first(items)),
               .sequence_begin =
                   device::tensor(batch.sequence_begin.data(), {std::ssize(batch.sequence_begin)}),
               .importance = vector_view(std::span(importance_).first(items))});
}

void Objective::keep_importance(const MicroBatch& micro, std::span<const float> logprob) {
  CHECK(config_.rollout_is.has_value());
  weigh_importance(device::Stream{}, micro, vector_view(logprob));
  for (std::size_t s = 0; s + 1 < micro.sequence_begin.size(); ++s)
    for (std::int32_t i = micro.sequence_begin[s]; i < micro.sequence_begin[s + 1]; ++i) {
      const auto m = static_cast<std::size_t>(i);
      if (weight_[m] == 0) continue;
      correction_.kept.sum += static_cast<double>(importance_[m]);
      correction_.kept.count += 1;
      // All tokens of a sequence have one weight.
      if (*config_.rollout_is == kernels::ImportanceLevel::kSequence) break;
    }
}

void Objective::count_importance(std::size_t items, ObjectiveSums& sums) {
  for (std::size_t m = 0; m < items; ++m) {
    // AD-3: a masked completion is in no mean.
    if (weight_[m] == 0) continue;
    const double weight = static_cast<double>(importance_[m]);
    sums.importance += weight;
    sums.importance_squares += weight * weight;
  }
}

// The importance weights of the items, with 0 for the rejected ones; empty where the loss has none.
device::TensorView Objective::importance_of(const device::Stream& stream, const MicroBatch& batch,
                                            std::span<const float> current,
                                            const device::TensorView& proximal,
                                            ObjectiveSums& sums) {
  const std::size_t items = batch.items.size();
  const std::optional<double> veto = config_.rollout_token_veto_threshold;
  if (!config_.rollout_is && correction_.criteria.empty() && !veto) return {};
  const std::span<float> importance = std::span(importance_).first(items);
  const std::span<const float> behaviour = std::span(behaviour_).first(items);
  const std::span<const float> weight = std::span(weight_).first(items);
  if (config_.rollout_is) {
    weigh_importance(stream, batch, proximal);
    count_importance(items, sums);
    if (correction_.mean != 1)
      for (float& i : importance) i = static_cast<float>(static_cast<double>(i) / correction_.mean);
  } else {
    std::fill(importance.begin(), importance.end(), 1.0f);
  }
  if (!correction_.criteria.empty() || veto) {
    const std::span<const float> policy =
        config_.bypass_mode ? current : std::span<const float>(proximal.f32(), items);
    const Rejected rejected = reject(correction_.criteria, veto,
                                     {policy, behaviour, weight, batch.sequence_begin}, importance);
    sums.rejected += static_cast<double>(rejected.tokens);
    sums.sequences += static_cast<double>(rejected.sequences_seen);
    sums.sequences_rejected += static_cast<double>(rejected.sequences);
    sums.sequences_vetoed += static_cast<double>(rejected.vetoed);
    sums.catastrophic += static_cast<double>(rejected.catastrophic);
  }
  return vector_view(importance);
}

void Objective::note_tokens(const MicroBatch& batch, const Operands& operands) {
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const auto begin = static_cast<std::size_t>(batch.sequence_begin[s]);
    const auto count = static_cast<std::size_t>(batch.sequence_begin[s + 1]) - begin;
    const auto part = [&](std::span<const float> all) {
      const auto own = all.subspan(begin, count);
      return std::vector<float>(own.begin(), own.end());
    };
    const auto part_of = [&](const device::TensorView& all) {
      return all.empty() ? std::vector<float>{} : part(std::span(all.f32(), begin + count));
    };
    watch_.tokens->completions.push_back(
        {.trajectory = static_cast<std::size_t>(batch.sequences[s]),
         .update = watch_.update,
         .logprobs = part(operands.inputs.logprob),
         .entropies = part(operands.inputs.entropy),
         .proximal = part_of(operands.proximal),
         .advantages = part(advantage_),
         .weights = part(weight_),
         .losses = part(watch_.loss),
         .importance = part_of(operands.importance),
         .reference = part_of(operands.reference)});
  }
}

Objective::Gradient Objective::evaluate(const device::Stream& stream, const MicroBatch& batch,
                                        const Inputs& inputs, LossPart part) {
  const std::size_t items = batch.items.size();
  ObjectiveSums& sums = sums_of(part);
  CHECK(items <= behaviour_.size() && inputs.logprob.size() == items);
  gather(batch);
  if (before_first_update_ && kept_proximal_.empty()) compare(batch, inputs.logprob, sums);
  const auto view = [items](std::vector<float>& values) {
    return vector_view(std::span(values).first(items));
  };
  const device::TensorView current = vector_view(inputs.logprob);
  // Three cases: the engine's log-probabilities, those kept before the first update, or those of
  // this forward, which then is the first and only update.
  device::TensorView proximal = config_.bypass_mode ? view(behaviour_) : current;
  if (!config_.bypass_mode && !kept_proximal_.empty()) {
    kept_proximal_.get(batch, std::span(proximal_).first(items));
    proximal = view(proximal_);
  }
  device::TensorView reference;
  if (!inputs.reference.empty()) reference = vector_view(inputs.reference);
  if (inputs.reference.empty() && config_.use_kl_loss) {
    kept_reference_.get(batch, std::span(reference_).first(items));
    reference = view(reference_);
  }
  const device::TensorView sequence_begin =
      device::tensor(batch.sequence_begin.data(), {std::ssize(batch.sequence_begin)});
  const device::TensorView importance =
      importance_of(stream, batch, inputs.logprob, proximal, sums);
  const bool entropy_loss = config_.entropy_coeff != 0;
  kernels::PolicyLossStats stats;
  kernels::policy_loss(
      stream, {.mode = config_.loss_mode,
               .clip_low = static_cast<float>(config_.clip_ratio_low),
               .clip_high = static_cast<float>(config_.clip_ratio_high),
               .clip_dual = static_cast<float>(config_.clip_ratio_c.value_or(0)),
               .kl_coef = config_.use_kl_loss ? static_cast<float>(config_.kl_loss_coef) : 0.0f,
               .kl_estimate = config_.kl_loss_type,
               .entropy_coef = static_cast<float>(config_.entropy_coeff),
               .current = current,
               .proximal = proximal,
               .advantage = view(advantage_),
               .weight = view(weight_),
               .importance = importance,
               .reference = reference,
               .entropy = vector_view(inputs.entropy),
               .sequence_begin = sequence_begin,
               .dlog_prob = view(dlogprob_),
               .dentropy = entropy_loss ? view(dentropy_) : device::TensorView{},
               .loss = watched() ? view(watch_.loss) : device::TensorView{},
               .stats = &stats});
  if (watched()) note_tokens(batch, {inputs, proximal, importance, reference});
  sums.loss += stats.loss;
  sums.tokens += stats.tokens;
  sums.clipped += stats.clipped;
  sums.dual_clipped += stats.dual_clipped;
  sums.clipped_low += stats.clipped_low;
  sums.reference_kl += stats.reference_kl;
  sums.kl_k1 += stats.approx_kl_k1;
  sums.entropy += stats.entropy;
  if (!std::isnan(most_.ratio) && !(stats.ratio_max <= most_.ratio)) most_.ratio = stats.ratio_max;
  return {std::span<const float>(dlogprob_).first(items),
          entropy_loss ? std::span<const float>(dentropy_).first(items) : std::span<const float>{}};
}

}  // namespace tandem::learner
