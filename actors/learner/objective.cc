#include "actors/learner/objective.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/policy_loss.h"
#include "runtime/base/check.h"

namespace tandem::actors {
namespace {

runtime::TensorView vector_view(std::span<const float> values) {
  return runtime::tensor(values.data(), {std::ssize(values)});
}

}  // namespace

Objective::Objective(const AlgorithmConfig& config, std::int64_t items_max) : config_(config) {
  for (std::vector<float>* v :
       {&behaviour_, &advantage_, &weight_, &importance_, &dlogprob_, &dentropy_})
    v->resize(static_cast<std::size_t>(items_max));
}

void Objective::begin(const TrainBatch& batch, const BatchAdvantages& advantages) {
  advantages_ = &advantages;
  step_ = batch.step;
  trajectories_.clear();
  for (const BatchGroup& group : batch.groups)
    for (const TrainTrajectory& trajectory : group.trajectories)
      trajectories_.push_back(&trajectory);
  sums_ = {};
  diff_max_at_staleness_0_ = 0;
}

void Objective::gather(const MicroBatch& batch) {
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const std::size_t index = static_cast<std::size_t>(batch.sequences[s]);
    const std::size_t begin = static_cast<std::size_t>(batch.sequence_begin[s]);
    const std::size_t end = static_cast<std::size_t>(batch.sequence_begin[s + 1]);
    const std::vector<float>& logprobs = trajectories_[index]->logprobs;
    CHECK(logprobs.size() == end - begin);
    std::copy(logprobs.begin(), logprobs.end(), behaviour_.begin() + batch.sequence_begin[s]);
    for (std::size_t m = begin; m < end; ++m) {
      advantage_[m] = advantages_->advantage[index];
      weight_[m] = advantages_->token_weight[index];
    }
  }
}

void Objective::compare(const MicroBatch& batch, std::span<const float> logprob) {
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const TrainTrajectory& trajectory =
        *trajectories_[static_cast<std::size_t>(batch.sequences[s])];
    const bool fresh = trajectory.oldest.value == step_.value;
    for (std::int32_t i = batch.sequence_begin[s]; i < batch.sequence_begin[s + 1]; ++i) {
      const std::size_t m = static_cast<std::size_t>(i);
      const double difference =
          std::abs(static_cast<double>(logprob[m]) - static_cast<double>(behaviour_[m]));
      sums_.logprob_diff += difference;
      if (!fresh) continue;
      sums_.tokens_at_staleness_0 += 1;
      // A NaN must not hide: max() would drop it, and so would a later difference.
      double& most = diff_max_at_staleness_0_;
      if (!std::isnan(most) && !(difference <= most)) most = difference;
    }
  }
}

Objective::Gradient Objective::evaluate(const runtime::Stream& stream, const MicroBatch& batch,
                                        const Inputs& inputs) {
  const std::size_t items = batch.items.size();
  CHECK(items <= behaviour_.size() && inputs.logprob.size() == items);
  gather(batch);
  compare(batch, inputs.logprob);
  const auto view = [items](std::vector<float>& values) {
    return vector_view(std::span(values).first(items));
  };
  const runtime::TensorView current = vector_view(inputs.logprob);
  const runtime::TensorView proximal = config_.bypass_mode ? view(behaviour_) : current;
  const runtime::TensorView sequence_begin =
      runtime::tensor(batch.sequence_begin.data(), {std::ssize(batch.sequence_begin)});
  runtime::TensorView importance;
  if (config_.rollout_is) {
    importance = view(importance_);
    kernels::importance_weights(stream,
                                {.level = *config_.rollout_is,
                                 .threshold = static_cast<float>(config_.rollout_is_threshold),
                                 .proximal = proximal,
                                 .behaviour = view(behaviour_),
                                 .weight = view(weight_),
                                 .sequence_begin = sequence_begin,
                                 .importance = importance});
  }
  const bool entropy_loss = config_.entropy_coeff != 0;
  kernels::PolicyLossStats stats;
  kernels::policy_loss(
      stream, {.mode = config_.loss_mode,
               .clip_low = static_cast<float>(config_.clip_ratio_low),
               .clip_high = static_cast<float>(config_.clip_ratio_high),
               .clip_dual = static_cast<float>(config_.clip_ratio_c.value_or(0)),
               .kl_coef = config_.use_kl_loss ? static_cast<float>(config_.kl_loss_coef) : 0.0f,
               .entropy_coef = static_cast<float>(config_.entropy_coeff),
               .current = current,
               .proximal = proximal,
               .advantage = view(advantage_),
               .weight = view(weight_),
               .importance = importance,
               .reference =
                   inputs.reference.empty() ? runtime::TensorView{} : vector_view(inputs.reference),
               .entropy = vector_view(inputs.entropy),
               .sequence_begin = sequence_begin,
               .dlog_prob = view(dlogprob_),
               .dentropy = entropy_loss ? view(dentropy_) : runtime::TensorView{},
               .stats = &stats});
  sums_.loss += stats.loss;
  sums_.tokens += stats.tokens;
  sums_.clipped += stats.clipped;
  sums_.kl_k1 += stats.approx_kl_k1;
  sums_.entropy += stats.entropy;
  return {std::span<const float>(dlogprob_).first(items),
          entropy_loss ? std::span<const float>(dentropy_).first(items) : std::span<const float>{}};
}

}  // namespace tandem::actors
