#include "actors/learner/observed_groups.h"

#include <cmath>
#include <span>

#include "runtime/base/rng.h"

namespace tandem::learner {

ObservedGroups choose_observed(const TrainBatch& batch, const std::vector<bool>& learns,
                               double fraction, std::uint64_t seed) {
  const std::size_t groups = batch.groups.size();
  std::vector<std::size_t> idle;
  for (std::size_t g = 0; g < groups; ++g)
    if (!learns[g]) idle.push_back(g);
  Rng rng(
      derive_seed(derive_seed(seed, "observe"), {static_cast<std::uint64_t>(batch.step.value)}));
  shuffle(std::span(idle), rng);
  const auto count =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(idle.size())));
  ObservedGroups observed{.chosen = std::vector<bool>(groups, false)};
  for (std::size_t i = 0; i < count; ++i) observed.chosen[idle[i]] = true;
  double all = 0, learning = 0, chosen = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    double tokens = 0;
    for (const TrainTrajectory& t : batch.groups[g].trajectories)
      tokens += static_cast<double>(t.tokens.size());
    all += tokens;
    learning += learns[g] ? tokens : 0;
    chosen += observed.chosen[g] ? tokens : 0;
  }
  if (chosen > 0) observed.tokens_per_token = (all - learning) / chosen;
  if (all > 0) observed.fraction = (learning + chosen) / all;
  return observed;
}

}  // namespace tandem::learner
