// The formulas are in the header. Rewards of all trajectories are first brought into one flat list
// in batch order (Shaped), on which every estimator works by index ranges of groups.
//
// Everything is computed by every rank from the whole batch, so no rank has to be told the result;
// this is also why sums have one fixed order (TR-1).
#include "actors/learner/advantage.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tandem::learner {
namespace {

constexpr double kGroupStdEps = 1.0e-4;  // beside the deviation of rewards
constexpr double kWhitenEps = 1.0e-8;    // beside the variance over tokens

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Divides by n - 1, as torch.std does; 0 for a single value.
double standard_deviation(std::span<const double> values, double mean) {
  if (values.size() < 2) return 0;
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// The factor by which rloo's baseline, which is of the others alone, differs from the group's mean.
double leave_one_out(const AlgorithmConfig& config, std::size_t n) {
  if (config.adv_estimator != AdvantageEstimator::kRloo || n < 2) return 1;
  return static_cast<double>(n) / (static_cast<double>(n) - 1);
}

// Whose deviation advantages are divided by. A job's rules refuse scale_rewards under estimators
// that are not divided.
ScaleRewards scale_of(const AlgorithmConfig& config) {
  if (config.scale_rewards) return *config.scale_rewards;
  const bool grpo = config.adv_estimator == AdvantageEstimator::kGrpo;
  return grpo && config.norm_adv_by_std_in_grpo ? ScaleRewards::kGroup : ScaleRewards::kNone;
}

// The advantages of one group under a group-relative estimator; `batch_std` is the deviation of the
// batch's rewards.
std::vector<double> within_group(const AlgorithmConfig& config, std::span<const double> rewards,
                                 double batch_std) {
  const double mean = mean_of(rewards);
  double scale = leave_one_out(config, rewards.size());
  const ScaleRewards by = scale_of(config);
  if (by == ScaleRewards::kGroup) scale /= standard_deviation(rewards, mean) + kGroupStdEps;
  if (by == ScaleRewards::kBatch) scale /= batch_std + kGroupStdEps;
  std::vector<double> advantages;
  for (const double r : rewards) advantages.push_back((r - mean) * scale);
  return advantages;
}

// Whitens the returns of the batch's completion tokens by the mean and variance of those that count
// (AD-3).
void whiten(std::span<double> returns, const std::vector<bool>& counts) {
  double tokens = 0, sum = 0, squares = 0;
  for (std::size_t t = 0; t < returns.size(); ++t) {
    if (!counts[t]) continue;
    sum += returns[t];
    tokens += 1;
  }
  const double mean = sum / std::max(tokens, 1.0);
  for (std::size_t t = 0; t < returns.size(); ++t)
    if (counts[t]) squares += (returns[t] - mean) * (returns[t] - mean);
  const double variance = squares / std::max(tokens - 1, 1.0);
  for (double& r : returns) r = (r - mean) / std::sqrt(variance + kWhitenEps);
}

// dr_grpo and gspo define their own denominators, whatever the job says.
LossAggregation aggregation_of(const AlgorithmConfig& config) {
  if (config.adv_estimator == AdvantageEstimator::kDrGrpo)
    return LossAggregation::kSeqMeanTokenSumNorm;
  if (config.loss_mode == kernels::LossMode::kGspo) return LossAggregation::kSeqMeanTokenMean;
  return config.loss_agg_mode;
}

// The sums over a mini-batch that the weights of its tokens are made of.
struct MiniBatchSums {
  double tokens = 0, sequences = 0;
};

double token_weight(LossAggregation aggregation, std::int32_t response_length_max,
                    const MiniBatchSums& sums, double length) {
  const auto [tokens, sequences] = sums;
  switch (aggregation) {
    case LossAggregation::kTokenMean:
      return 1 / tokens;
    case LossAggregation::kSeqMeanTokenSum:
      return 1 / sequences;
    case LossAggregation::kSeqMeanTokenMean:
      return 1 / (sequences * length);
    case LossAggregation::kSeqMeanTokenSumNorm:
      return 1 / (sequences * static_cast<double>(response_length_max));
  }
  CHECK(false);
  return 0;
}

// The trajectories of a batch in order, with rewards shaped by length.
struct Shaped {
  std::vector<double> rewards;        // [sum n_g]
  std::vector<std::int64_t> lengths;  // [sum n_g] completion tokens
  std::vector<bool> counts;           // [sum n_g] the trajectory is in the loss (AD-3)
  std::vector<std::size_t> begin{0};  // [B + 1] of each group
};

Shaped shaped_by_length(const AlgorithmConfig& config, const BatchShape& shape,
                        const TrainBatch& batch) {
  Shaped out;
  for (const BatchGroup& group : batch.groups) {
    for (const TrainTrajectory& t : group.trajectories) {
      out.lengths.push_back(std::ssize(t.tokens));
      out.rewards.push_back(
          static_cast<double>(t.reward) +
          overlong_penalty(config.overlong_buffer, shape.response_length_max, out.lengths.back()));
      out.counts.push_back(!(config.mask_truncated_completions && t.truncated));
    }
    out.begin.push_back(out.rewards.size());
  }
  return out;
}

// Appends the weights of the groups [first, last), which are one mini-batch.
void append_weights(const AlgorithmConfig& config, const BatchShape& shape, const Shaped& shaped,
                    std::size_t first, std::size_t last, std::vector<float>& weights) {
  MiniBatchSums sums;
  for (std::size_t i = shaped.begin[first]; i < shaped.begin[last]; ++i) {
    if (!shaped.counts[i]) continue;
    sums.tokens += static_cast<double>(shaped.lengths[i]);
    sums.sequences += 1;
  }
  const LossAggregation aggregation = aggregation_of(config);
  for (std::size_t i = shaped.begin[first]; i < shaped.begin[last]; ++i)
    weights.push_back(shaped.counts[i] ? static_cast<float>(token_weight(
                                             aggregation, shape.response_length_max, sums,
                                             static_cast<double>(shaped.lengths[i])))
                                       : 0.0f);
}

// reinforce_plus_plus: the return of each completion token, whitened over the batch. Returns are
// computed from the last token back to the first, because a token's return includes the penalties
// of the tokens behind it.
void whitened_returns(const Shaped& shaped, std::span<const float> penalties,
                      BatchAdvantages& out) {
  std::vector<double> returns;
  std::vector<bool> counts;
  for (std::size_t i = 0; i < shaped.lengths.size(); ++i) {
    counts.insert(counts.end(), static_cast<std::size_t>(shaped.lengths[i]), shaped.counts[i]);
    const auto begin = static_cast<std::ptrdiff_t>(returns.size());
    double value = shaped.rewards[i];
    for (std::int64_t t = shaped.lengths[i]; t-- > 0;) {
      if (!penalties.empty())
        value -= static_cast<double>(penalties[static_cast<std::size_t>(begin + t)]);
      returns.push_back(value);
    }
    std::reverse(returns.begin() + begin, returns.end());
  }
  whiten(returns, counts);
  std::size_t next = 0;
  for (const std::int64_t length : shaped.lengths) {
    const std::size_t tokens = static_cast<std::size_t>(length);
    const std::span<const double> own = std::span(returns).subspan(next, tokens);
    out.advantage.push_back(static_cast<float>(penalties.empty() ? own[0] : mean_of(own)));
    next += tokens;
  }
  if (!penalties.empty()) out.of_token.assign(returns.begin(), returns.end());
}

// The sum of the penalties of each trajectory's tokens; empty without penalties.
std::vector<double> summed_penalties(const Shaped& shaped, std::span<const float> penalties) {
  std::vector<double> sums;
  const float* next = penalties.data();
  for (std::size_t i = 0; !penalties.empty() && i < shaped.lengths.size(); ++i) {
    sums.push_back(0);
    for (std::int64_t t = 0; t < shaped.lengths[i]; ++t)
      sums.back() += static_cast<double>(*next++);
  }
  return sums;
}

// Takes a group's penalties, beside their mean, from its advantages.
void take_penalties(const AlgorithmConfig& config, std::span<const double> penalties,
                    std::vector<double>& advantages) {
  const double mean = mean_of(penalties), scale = leave_one_out(config, penalties.size());
  for (std::size_t i = 0; i < penalties.size(); ++i) advantages[i] -= scale * (penalties[i] - mean);
}

// advantage_batch_normalize: whitens the advantages of trajectories over the tokens that count.
void normalize_over_batch(const Shaped& shaped, std::vector<float>& advantages) {
  double tokens = 0, sum = 0, squares = 0;
  const auto each = [&](const auto& add) {
    for (std::size_t i = 0; i < advantages.size(); ++i)
      if (shaped.counts[i])
        add(static_cast<double>(shaped.lengths[i]), static_cast<double>(advantages[i]));
  };
  each([&](double length, double advantage) {
    tokens += length;
    sum += length * advantage;
  });
  const double mean = sum / std::max(tokens, 1.0);
  each([&](double length, double advantage) {
    squares += length * (advantage - mean) * (advantage - mean);
  });
  const double variance = squares / std::max(tokens - 1, 1.0);
  for (float& advantage : advantages)
    advantage = static_cast<float>((static_cast<double>(advantage) - mean) /
                                   std::sqrt(variance + kWhitenEps));
}

// advantage_clip: cuts advantages to [-most, most]. A NaN stays.
void clip(std::vector<float>& advantages, float most) {
  for (float& advantage : advantages) advantage = std::clamp(advantage, -most, most);
}

bool any_counts(const Shaped& shaped, std::size_t group) {
  for (std::size_t i = shaped.begin[group]; i < shaped.begin[group + 1]; ++i)
    if (shaped.counts[i]) return true;
  return false;
}

// Whether a token of the groups [first, last) that counts has an advantage beside 0.
bool any_advantage(const Shaped& shaped, std::size_t first, std::size_t last,
                   const BatchAdvantages& advantages) {
  if (!advantages.of_token.empty()) return true;  // KL makes them differ
  for (std::size_t i = shaped.begin[first]; i < shaped.begin[last]; ++i)
    if (shaped.counts[i] && advantages.advantage[i] != 0) return true;
  return false;
}

}  // namespace

double overlong_penalty(const OverlongBuffer& buffer, std::int64_t response_length_max,
                        std::int64_t completion_tokens) {
  if (buffer.len == 0) return 0;
  const auto exceeded = static_cast<double>(completion_tokens - (response_length_max - buffer.len));
  return std::min(-exceeded / static_cast<double>(buffer.len) * buffer.penalty_factor, 0.0);
}

BatchAdvantages compute_advantages(const AlgorithmConfig& config, const BatchShape& shape,
                                   const TrainBatch& batch, std::span<const float> penalties) {
  const bool relative = config.adv_estimator != AdvantageEstimator::kReinforcePlusPlus;
  const bool all_learn = !relative || config.advantage_batch_normalize ||
                         config.has_loss_on_every_token() || config.use_kl_in_reward;
  const Shaped shaped = shaped_by_length(config, shape, batch);
  BatchAdvantages out;
  for (const std::int64_t length : shaped.lengths) out.tokens += static_cast<std::uint64_t>(length);
  CHECK(penalties.empty() || penalties.size() == out.tokens);
  if (!relative) whitened_returns(shaped, penalties, out);
  const std::vector<double> taken = summed_penalties(shaped, penalties);
  const double batch_std = standard_deviation(shaped.rewards, mean_of(shaped.rewards));
  const std::size_t groups = batch.groups.size();
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t begin = shaped.begin[g];
    const std::span<const double> mine =
        std::span(shaped.rewards).subspan(begin, shaped.begin[g + 1] - begin);
    const bool equal =
        std::all_of(mine.begin(), mine.end(), [&](double r) { return r == mine[0]; });
    out.zero_variance += equal ? 1 : 0;
    out.learns.push_back(any_counts(shaped, g) && (all_learn || !equal));
    if (!relative) continue;
    // The advantages are exactly 0, and not the rounding of a mean: AD-1 promises no gradient at
    // all.
    std::vector<double> own =
        equal ? std::vector<double>(mine.size(), 0.0) : within_group(config, mine, batch_std);
    if (!taken.empty()) take_penalties(config, std::span(taken).subspan(begin, mine.size()), own);
    out.advantage.insert(out.advantage.end(), own.begin(), own.end());
  }
  if (config.advantage_batch_normalize) normalize_over_batch(shaped, out.advantage);
  if (config.advantage_clip) {
    clip(out.advantage, static_cast<float>(*config.advantage_clip));
    clip(out.of_token, static_cast<float>(*config.advantage_clip));
  }
  const std::size_t size =
      shape.mini_batch_groups == 0 ? groups : static_cast<std::size_t>(shape.mini_batch_groups);
  for (std::size_t first = 0; first < groups; first += size) {
    const std::size_t last = std::min(first + size, groups);
    append_weights(config, shape, shaped, first, last, out.token_weight);
    out.teaches.push_back(config.has_loss_on_every_token() ||
                          any_advantage(shaped, first, last, out));
  }
  return out;
}

}  // namespace tandem::learner
