#include "actors/exchange/batch_figures.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "actors/exchange/evaluation_means.h"

namespace tandem::exchange {

Spread spread_of(std::span<const float> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  const auto [min, max] = std::ranges::minmax(values);
  Spread spread{.mean = sum / count, .min = min, .max = max};
  for (const float value : values) {
    const double apart = static_cast<double>(value) - spread.mean;
    squares += apart * apart;
  }
  if (values.size() > 1) spread.std = std::sqrt(squares / (count - 1));
  return spread;
}

BatchFigures figures_of_batch(StepId step, std::span<const GroupFacts* const> groups,
                              const GroupFilter& filter) {
  BatchFigures figures;
  std::vector<float> rewards;
  double tokens = 0, truncated = 0, trajectories = 0, solved_all = 0, solved_none = 0;
  for (const GroupFacts* group : groups) {
    const auto solved = [](float reward) { return reward > kSuccessAbove; };
    rewards.insert(rewards.end(), group->rewards.begin(), group->rewards.end());
    figures.rewards_failed += group->failed;
    figures.kept += reason_to_filter(filter, group->rewards) ? 1 : 0;
    solved_all += std::ranges::all_of(group->rewards, solved) ? 1 : 0;
    solved_none += std::ranges::none_of(group->rewards, solved) ? 1 : 0;
    for (const messages::TrajectoryHeader& trajectory : group->header->trajectories) {
      figures.staleness.add(step.value - trajectory.oldest.value);
      const double length = trajectory.completion_tokens;
      tokens += length;
      figures.completion_tokens_max = std::max(figures.completion_tokens_max, length);
      truncated += trajectory.finish == messages::FinishReason::kLength ? 1 : 0;
      trajectories += 1;
    }
  }
  if (trajectories == 0) return figures;
  const auto count = static_cast<double>(groups.size());
  figures.rewards = spread_of(rewards);
  figures.solved_all = solved_all / count;
  figures.solved_none = solved_none / count;
  figures.completion_tokens_mean = tokens / trajectories;
  figures.truncated_fraction = truncated / trajectories;
  return figures;
}

}  // namespace tandem::exchange
