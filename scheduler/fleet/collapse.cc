#include "scheduler/fleet/collapse.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tandem::scheduler {
namespace {

// Means of the figures; `reward_std` is the root of the mean variance.
StepSigns mean_of(const std::deque<StepSigns>& steps) {
  const auto count = static_cast<double>(steps.size());
  StepSigns mean{.step = steps.back().step, .groups = steps.back().groups};
  double variance = 0;
  for (const StepSigns& step : steps) {
    mean.reward_mean += step.reward_mean / count;
    mean.entropy += step.entropy / count;
    mean.ppo_kl += step.ppo_kl / count;
    variance += step.reward_std * step.reward_std / count;
  }
  mean.reward_std = std::sqrt(variance);
  return mean;
}

// How many times the entropy has become larger or smaller.
double entropy_factor(const StepSigns& start, const StepSigns& now) {
  const double least = std::min(start.entropy, now.entropy);
  const double most = std::max(start.entropy, now.entropy);
  return least > 0 ? most / least : most > 0 ? HUGE_VAL : 1;
}

bool reward_fell(const StepSigns& start, const StepSigns& now) {
  const auto samples = static_cast<double>(kCollapseWindow) *
                       static_cast<double>(std::max<std::int64_t>(now.groups, 1));
  const double error =
      std::sqrt((start.reward_std * start.reward_std + now.reward_std * now.reward_std) / samples);
  return start.reward_mean - now.reward_mean > kCollapseErrors * error;
}

}  // namespace

std::optional<Collapse> CollapseWatch::take(const StepSigns& step) {
  const double figures[] = {step.reward_mean, step.reward_std, step.entropy, step.ppo_kl};
  if (!std::ranges::all_of(figures, [](double figure) { return std::isfinite(figure); })) return {};
  if (first_.size() < kCollapseWindow) {
    first_.push_back(step);
    return {};
  }
  newest_.push_back(step);
  if (newest_.size() > kCollapseWindow) newest_.pop_front();
  if (newest_.size() < kCollapseWindow) return {};
  const StepSigns start = mean_of(first_), now = mean_of(newest_);
  const double factor = entropy_factor(start, now);
  if (factor <= 2) told_ = false;
  if (told_ || factor <= kCollapseEntropyFactor || !reward_fell(start, now)) return {};
  told_ = true;
  return Collapse{.step = step.step, .start = start, .now = now};
}

std::string text(const Collapse& collapse) {
  const auto& [step, start, now] = collapse;
  char words[256];
  std::snprintf(words, sizeof words,
                "training may have collapsed at step %lld: entropy is %.3g nats after %.3g at the "
                "start, the mean reward %.3g after %.3g, actor/ppo_kl %.3g after %.3g; lower "
                "learner.optimizer.lr",
                static_cast<long long>(step), now.entropy, start.entropy, now.reward_mean,
                start.reward_mean, now.ppo_kl, start.ppo_kl);
  return words;
}

}  // namespace tandem::scheduler
