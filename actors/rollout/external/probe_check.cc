#include "actors/rollout/external/probe_check.h"

#include <cmath>
#include <cstdio>

namespace tandem::rollout {
namespace {

constexpr double kStaleShare = 0.1;

double mean_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return sum / static_cast<double>(a.size());
}

std::string nats(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

}  // namespace

std::optional<std::string> probe_fault(const ProbeCheck& check) {
  const auto& [served, expected] = check.now;
  if (served.size() != expected.size() || served.empty())
    return "it scored " + std::to_string(served.size()) + " tokens of " +
           std::to_string(expected.size());
  const double off = mean_difference(served, expected);
  // A NaN is not within any tolerance.
  if (!(off <= check.tolerance))
    return "its log-probabilities of a probe are " + nats(off) +
           " off the learner's on average, more than " + nats(check.tolerance) +
           ", rollout.engine.logprob_tolerance";
  const ProbeScores& before = check.before;
  if (before.served.size() != served.size() || before.expected.size() != served.size()) return {};
  const double learners = mean_difference(expected, before.expected);
  const double servers = mean_difference(served, before.served);
  if (learners > kTellingShare * check.tolerance && servers < kStaleShare * learners)
    return "it still computes with the version before: its log-probabilities of a probe have "
           "changed by " +
           nats(servers) + ", and the learner's by " + nats(learners);
  return {};
}

}  // namespace tandem::rollout
