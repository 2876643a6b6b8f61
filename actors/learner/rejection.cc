#include "actors/learner/rejection.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/policy_loss.h"
#include "runtime/base/check.h"

namespace tandem::learner {
namespace {

constexpr double kMost = kernels::kLogRatioMax;

enum class Reach { kToken, kSum, kMean, kMax };
Reach reach_of(RejectionForm form) {
  using enum RejectionForm;
  switch (form) {
    case kToken:
    case kTokenK2:
    case kTokenK3:
      return Reach::kToken;
    case kSequence:
    case kSeqSumK2:
    case kSeqSumK3:
      return Reach::kSum;
    case kGeometric:
    case kSeqMeanK2:
    case kSeqMeanK3:
      return Reach::kMean;
    case kSeqMaxK2:
    case kSeqMaxK3:
      return Reach::kMax;
  }
  CHECK(false);
}

bool is_k2(RejectionForm form) {
  using enum RejectionForm;
  return form == kTokenK2 || form == kSeqSumK2 || form == kSeqMeanK2 || form == kSeqMaxK2;
}

// A token's term: its log-ratio, or its divergence.
double term_of(RejectionForm form, double log_ratio) {
  if (bounds_ratio(form)) return log_ratio;
  const double bounded = std::clamp(log_ratio, -kMost, kMost);  // a NaN stays one
  return is_k2(form) ? 0.5 * bounded * bounded : std::expm1(bounded) - bounded;
}

// Takes no NaN.
bool takes(const RejectionCriterion& criterion, double value) {
  if (!bounds_ratio(criterion.form)) return value <= criterion.upper;
  const double ratio = std::isnan(value) ? value : std::exp(std::clamp(value, -kMost, kMost));
  return ratio >= criterion.lower && ratio <= criterion.upper;
}

// The items of one sequence.
struct Sequence {
  const RejectionInput& input;
  std::size_t begin, end;

  double log_ratio(std::size_t t) const {
    return static_cast<double>(input.policy[t]) - static_cast<double>(input.behaviour[t]);
  }
  void for_each(auto&& with) const {
    for (std::size_t t = begin; t < end; ++t)
      if (input.weight[t] != 0) with(t);
  }
  // The sum, mean or maximum of the terms; 0 of a sequence that does not count.
  double shared(RejectionForm form) const {
    double sum = 0, most = 0, tokens = 0;
    for_each([&](std::size_t t) {
      const double term = term_of(form, log_ratio(t));
      sum += term;
      if (!std::isnan(most) && !(term <= most)) most = term;
      tokens += 1;
    });
    const Reach reach = reach_of(form);
    if (reach == Reach::kMax) return most;
    return reach == Reach::kSum ? sum : sum / std::max(tokens, 1.0);
  }
};

}  // namespace

std::vector<RejectionCriterion> rejection_criteria(const AlgorithmConfig& config) {
  std::vector<RejectionCriterion> criteria;
  if (!config.rollout_rs) return criteria;
  const double upper = config.rollout_rs_threshold;
  criteria.push_back(
      {*config.rollout_rs, config.rollout_rs_threshold_lower.value_or(1 / upper), upper});
  for (const auto& [name, threshold] : config.rollout_rs_also) {
    const std::optional<RejectionForm> form = spelt<RejectionForm>(name);
    CHECK(form.has_value());
    criteria.push_back({*form, 1 / threshold, threshold});
  }
  return criteria;
}

Rejected reject(std::span<const RejectionCriterion> criteria, std::optional<double> veto,
                const RejectionInput& input, std::span<float> importance) {
  const auto& [policy, behaviour, weight, sequence_begin] = input;
  CHECK(policy.size() == behaviour.size() && policy.size() == weight.size() &&
        policy.size() == importance.size());
  Rejected rejected;
  std::vector<double> shared(criteria.size());
  for (std::size_t s = 0; s + 1 < sequence_begin.size(); ++s) {
    const Sequence sequence{input, static_cast<std::size_t>(sequence_begin[s]),
                            static_cast<std::size_t>(sequence_begin[s + 1])};
    std::size_t seen = 0, tokens = 0, catastrophic = 0;
    for (std::size_t c = 0; c < criteria.size(); ++c) shared[c] = sequence.shared(criteria[c].form);
    sequence.for_each([&](std::size_t t) {
      bool taken = true;
      for (std::size_t c = 0; c < criteria.size(); ++c) {
        const RejectionForm form = criteria[c].form;
        const bool alone = reach_of(form) == Reach::kToken;
        taken &= takes(criteria[c], alone ? term_of(form, sequence.log_ratio(t)) : shared[c]);
      }
      seen += 1;
      if (veto && !(sequence.log_ratio(t) >= std::log(*veto))) catastrophic += 1;
      if (taken) return;
      importance[t] = 0;
      tokens += 1;
    });
    if (catastrophic > 0) sequence.for_each([&](std::size_t t) { importance[t] = 0; });
    rejected.tokens += tokens;
    rejected.catastrophic += catastrophic;
    rejected.sequences += tokens > 0 ? 1 : 0;
    rejected.vetoed += catastrophic > 0 ? 1 : 0;
    rejected.sequences_seen += seen > 0 ? 1 : 0;
  }
  return rejected;
}

}  // namespace tandem::learner
