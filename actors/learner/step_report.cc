#include "actors/learner/step_report.h"

#include <algorithm>
#include <vector>

namespace tandem::learner {
namespace {

// Sets the figures over the tokens that count in the loss, of which there are some.
void add_means(const AlgorithmConfig& config, const ObjectiveSums& sums, double ratio_max,
               messages::StepReport& report) {
  const auto mean = [&sums](double sum) { return sum / sums.tokens; };
  report.ratio_max = ratio_max;
  report.entropy = mean(sums.entropy);
  report.ppo_kl = mean(sums.kl_k1);
  report.pg_clipfrac = mean(sums.clipped);
  report.pg_clipfrac_low = mean(sums.clipped_low);
  // Sums of a sample are no whole numbers: their difference may be a rounding below 0.
  const double clipped_high = sums.clipped - sums.clipped_low - sums.dual_clipped;
  report.pg_clipfrac_high = mean(std::max(clipped_high, 0.0));
  if (config.clip_ratio_c) report.pg_clipfrac_lower = mean(sums.dual_clipped);
  if (config.use_kl_loss) report.kl_loss = mean(sums.reference_kl);
  if (config.rollout_rs) {
    report.rollout_rs_masked_fraction = mean(sums.rejected);
    report.rollout_rs_seq_masked_fraction = sums.sequences_rejected / sums.sequences;
  }
  if (config.rollout_token_veto_threshold) {
    report.rollout_is_veto_fraction = sums.sequences_vetoed / sums.sequences;
    report.rollout_is_catastrophic_token_fraction = mean(sums.catastrophic);
  }
  if (!config.rollout_is) return;
  report.rollout_is_mean = mean(sums.importance);
  // (sum w)² / (n sum w²): 1 where all weights are equal.
  if (sums.importance_squares > 0)
    report.rollout_is_eff_sample_size =
        sums.importance * sums.importance / (sums.importance_squares * sums.tokens);
}

}  // namespace

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
  double ratio_max = objective.ratio_max();
  if (auto reduced = gang.reduce({}, ratio_max); !reduced) return reduced;
  if (sums.tokens > 0) add_means(config, sums, ratio_max, report);
  const auto ratio = [](double sum, double count) { return count == 0 ? 0 : sum / count; };
  report.loss = sums.loss / static_cast<double>(updates);
  report.logprob_diff_mean = ratio(sums.logprob_diff, sums.compared);
  report.tokens_at_staleness_0 = static_cast<std::uint64_t>(sums.tokens_at_staleness_0);
  return {};
}

}  // namespace tandem::learner
