#include "actors/learner/rejection.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/policy_loss.h"
#include "runtime/base/check.h"

namespace tandem::learner {
namespace {

struct Bounds {
  double lower, upper;
  // Takes no NaN.
  bool take(double log_ratio) const {
    constexpr double kMost = kernels::kLogRatioMax;
    const double ratio =
        std::isnan(log_ratio) ? log_ratio : std::exp(std::clamp(log_ratio, -kMost, kMost));
    return ratio >= lower && ratio <= upper;
  }
};

}  // namespace

std::size_t reject(const AlgorithmConfig& config, const RejectionInput& input,
                   std::span<float> importance) {
  const double upper = config.rollout_rs_threshold;
  const Bounds bounds{config.rollout_rs_threshold_lower.value_or(1 / upper), upper};
  const RejectionLevel level = config.rollout_rs.value();
  const auto& [policy, behaviour, weight, sequence_begin] = input;
  CHECK(policy.size() == behaviour.size() && policy.size() == weight.size() &&
        policy.size() == importance.size());
  std::size_t rejected = 0;
  for (std::size_t s = 0; s + 1 < sequence_begin.size(); ++s) {
    const auto begin = static_cast<std::size_t>(sequence_begin[s]);
    const auto end = static_cast<std::size_t>(sequence_begin[s + 1]);
    const auto log_ratio = [&](std::size_t t) {
      return static_cast<double>(policy[t]) - static_cast<double>(behaviour[t]);
    };
    double sum = 0, tokens = 0;
    for (std::size_t t = begin; t < end; ++t) {
      if (weight[t] == 0) continue;
      sum += log_ratio(t);
      tokens += 1;
    }
    const double shared = level == RejectionLevel::kSequence ? sum : sum / std::max(tokens, 1.0);
    for (std::size_t t = begin; t < end; ++t) {
      if (weight[t] == 0) continue;
      if (bounds.take(level == RejectionLevel::kToken ? log_ratio(t) : shared)) continue;
      importance[t] = 0;
      ++rejected;
    }
  }
  return rejected;
}

}  // namespace tandem::learner
