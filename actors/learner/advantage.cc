#include "actors/learner/advantage.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tandem::actors {
namespace {

constexpr double kGroupStdEps = 1.0e-4;
constexpr double kWhitenEps = 1.0e-8;

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// With n - 1, as torch.std; 0 for a single value.
double standard_deviation(std::span<const double> values, double mean) {
  if (values.size() < 2) return 0;
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// The advantages of one group under a group-relative estimator.
std::vector<double> within_group(const AlgorithmConfig& config, std::span<const double> rewards) {
  const double n = static_cast<double>(rewards.size());
  const double mean = mean_of(rewards);
  double scale = 1;
  if (config.estimator == AdvantageEstimator::kGrpo && config.norm_adv_by_std_in_grpo)
    scale = 1 / (standard_deviation(rewards, mean) + kGroupStdEps);
  if (config.estimator == AdvantageEstimator::kRloo && rewards.size() > 1) scale = n / (n - 1);
  std::vector<double> advantages;
  for (const double r : rewards) advantages.push_back((r - mean) * scale);
  return advantages;
}

// Whitens over the completion tokens of the whole batch: each trajectory counts T times.
std::vector<double> whitened(std::span<const double> rewards,
                             std::span<const std::int64_t> lengths) {
  double tokens = 0, sum = 0;
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    tokens += static_cast<double>(lengths[i]);
    sum += rewards[i] * static_cast<double>(lengths[i]);
  }
  const double mean = sum / tokens;
  double squares = 0;
  for (std::size_t i = 0; i < rewards.size(); ++i)
    squares += (rewards[i] - mean) * (rewards[i] - mean) * static_cast<double>(lengths[i]);
  const double variance = squares / std::max(tokens - 1, 1.0);
  std::vector<double> advantages;
  for (const double r : rewards)
    advantages.push_back((r - mean) / std::sqrt(variance + kWhitenEps));
  return advantages;
}

LossAggregation aggregation_of(const AlgorithmConfig& config) {
  if (config.estimator == AdvantageEstimator::kDrGrpo) return LossAggregation::kSeqMeanTokenSumNorm;
  if (config.loss_mode == kernels::LossMode::kGspo) return LossAggregation::kSeqMeanTokenMean;
  return config.loss_aggregation;
}

double token_weight(const AlgorithmConfig& config, double tokens, double sequences, double length) {
  switch (aggregation_of(config)) {
    case LossAggregation::kTokenMean:
      return 1 / tokens;
    case LossAggregation::kSeqMeanTokenSum:
      return 1 / sequences;
    case LossAggregation::kSeqMeanTokenMean:
      return 1 / (sequences * length);
    case LossAggregation::kSeqMeanTokenSumNorm:
      return 1 / (sequences * static_cast<double>(config.response_length_max));
  }
  CHECK(false);
  return 0;
}

}  // namespace

double overlong_penalty(const AlgorithmConfig& config, std::int64_t completion_tokens) {
  const OverlongBuffer& buffer = config.overlong_buffer;
  if (buffer.length == 0) return 0;
  const double exceeded =
      static_cast<double>(completion_tokens - (config.response_length_max - buffer.length));
  return std::min(-exceeded / static_cast<double>(buffer.length) * buffer.penalty_factor, 0.0);
}

BatchAdvantages compute_advantages(const AlgorithmConfig& config, const TrainBatch& batch) {
  BatchAdvantages out;
  std::vector<double> rewards;
  std::vector<std::int64_t> lengths;
  std::vector<double> advantages;
  for (const BatchGroup& group : batch.groups) {
    const std::size_t begin = rewards.size();
    for (const TrainTrajectory& t : group.trajectories) {
      lengths.push_back(std::ssize(t.tokens));
      rewards.push_back(static_cast<double>(t.reward) + overlong_penalty(config, lengths.back()));
      out.tokens += t.tokens.size();
    }
    const std::span<const double> mine = std::span(rewards).subspan(begin);
    const bool equal =
        std::all_of(mine.begin(), mine.end(), [&](double r) { return r == mine[0]; });
    out.zero_variance += equal ? 1 : 0;
    const bool relative = config.estimator != AdvantageEstimator::kReinforcePlusPlus;
    out.learns.push_back(!(relative && equal) || config.has_loss_on_every_token());
    if (!relative) continue;
    const std::vector<double> own =
        equal ? std::vector<double>(mine.size(), 0.0) : within_group(config, mine);
    advantages.insert(advantages.end(), own.begin(), own.end());
  }
  if (config.estimator == AdvantageEstimator::kReinforcePlusPlus)
    advantages = whitened(rewards, lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    out.advantage.push_back(static_cast<float>(advantages[i]));
    out.token_weight.push_back(static_cast<float>(
        token_weight(config, static_cast<double>(out.tokens), static_cast<double>(lengths.size()),
                     static_cast<double>(lengths[i]))));
  }
  return out;
}

}  // namespace tandem::actors
