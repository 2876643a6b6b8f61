#include "actors/rollout/external/probe_check.h"

#include <cmath>
#include <cstdio>

namespace tandem::rollout {
namespace {

constexpr double kCloser = 2;

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
  if (check.served.size() != check.expected.size() || check.served.empty())
    return "it scored " + std::to_string(check.served.size()) + " tokens of " +
           std::to_string(check.expected.size());
  const double off = mean_difference(check.served, check.expected);
  // A NaN is not within any tolerance.
  if (!(off <= check.tolerance))
    return "its log-probabilities of a probe are " + nats(off) +
           " off the learner's on average, more than " + nats(check.tolerance) +
           ", rollout.engine.logprob_tolerance";
  if (check.before.size() != check.served.size()) return {};
  const double off_before = mean_difference(check.served, check.before);
  if (off_before * kCloser < off)
    return "it still computes with the version before: its log-probabilities of a probe are " +
           nats(off_before) + " off that one's, and " + nats(off) + " off the new one's";
  return {};
}

}  // namespace tandem::rollout
