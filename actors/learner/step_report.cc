#include "actors/learner/step_report.h"

#include <algorithm>
#include <vector>

namespace tandem::learner {

Result<void> report_objective(Gang& gang, const ReportOf& of, messages::StepReport& report) {
  const auto& [config, objective, observed, updates] = of;
  ObjectiveSums sums = objective.sums();
  sums.add_sample(objective.observed(), observed.tokens_per_token);
  report.observed_fraction = observed.fraction;
  std::vector<double> flat;
  for (const double* field : sums.fields()) flat.push_back(*field);
  report.logprob_diff_max_at_staleness_0 = objective.diff_max_at_staleness_0();
  if (auto summed = gang.reduce(flat, report.logprob_diff_max_at_staleness_0); !summed)
    return summed;
  for (std::size_t i = 0; i < flat.size(); ++i) *sums.fields()[i] = flat[i];
  // reduce() has room for one maximum, so the second one takes a call of its own.
  report.ratio_max = objective.ratio_max();
  if (auto reduced = gang.reduce({}, report.ratio_max); !reduced) return reduced;
  const auto ratio = [](double sum, double count) { return count == 0 ? 0 : sum / count; };
  report.loss = sums.loss / static_cast<double>(updates);
  report.entropy = ratio(sums.entropy, sums.tokens);
  report.ppo_kl = ratio(sums.kl_k1, sums.tokens);
  report.pg_clipfrac = ratio(sums.clipped, sums.tokens);
  report.pg_clipfrac_low = ratio(sums.clipped_low, sums.tokens);
  // Sums of a sample are no whole numbers: their difference may be a rounding below 0.
  const double clipped_high = sums.clipped - sums.clipped_low - sums.dual_clipped;
  report.pg_clipfrac_high = ratio(std::max(clipped_high, 0.0), sums.tokens);
  if (config.clip_ratio_c) report.pg_clipfrac_lower = ratio(sums.dual_clipped, sums.tokens);
  if (config.use_kl_loss) report.kl_loss = ratio(sums.reference_kl, sums.tokens);
  if (config.rollout_is) {
    report.rollout_is_mean = ratio(sums.importance, sums.tokens);
    // (sum w)² / (n sum w²): 1 where all weights are equal.
    report.rollout_is_eff_sample_size =
        ratio(sums.importance * sums.importance, sums.importance_squares * sums.tokens);
  }
  report.logprob_diff_mean = ratio(sums.logprob_diff, sums.compared);
  report.tokens_at_staleness_0 = static_cast<std::uint64_t>(sums.tokens_at_staleness_0);
  return {};
}

}  // namespace tandem::learner
