#include "actors/learner/observed_groups.h"

#include <cmath>
#include <span>

#include "runtime/base/rng.h"

namespace tandem::learner {

namespace {

// Completion tokens of a group: all of them, and those that count in the loss.
struct GroupTokens {
  double all = 0, counting = 0;
};

std::vector<GroupTokens> tokens_of(const TrainBatch& batch, std::span<const float> token_weight) {
  std::vector<GroupTokens> groups;
  std::size_t next = 0;
  for (const BatchGroup& group : batch.groups) {
    GroupTokens& tokens = groups.emplace_back();
    for (const TrainTrajectory& trajectory : group.trajectories) {
      const auto length = static_cast<double>(trajectory.tokens.size());
      tokens.all += length;
      tokens.counting += token_weight[next++] != 0 ? length : 0;
    }
  }
  return groups;
}

}  // namespace

ObservedGroups choose_observed(const TrainBatch& batch, const BatchAdvantages& advantages,
                               double fraction, std::uint64_t seed) {
  const std::vector<bool>& learns = advantages.learns;
  const std::vector<GroupTokens> tokens = tokens_of(batch, advantages.token_weight);
  const std::size_t groups = batch.groups.size();
  std::vector<std::size_t> idle;
  for (std::size_t g = 0; g < groups; ++g)
    if (!learns[g] && tokens[g].counting > 0) idle.push_back(g);
  Rng rng(
      derive_seed(derive_seed(seed, "observe"), {static_cast<std::uint64_t>(batch.step.value)}));
  shuffle(std::span(idle), rng);
  const auto count =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(idle.size())));
  ObservedGroups observed{.chosen = std::vector<bool>(groups, false)};
  for (std::size_t i = 0; i < count; ++i) observed.chosen[idle[i]] = true;
  double all = 0, computed = 0, idle_counting = 0, chosen_counting = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    all += tokens[g].all;
    computed += learns[g] || observed.chosen[g] ? tokens[g].all : 0;
    idle_counting += learns[g] ? 0 : tokens[g].counting;
    chosen_counting += observed.chosen[g] ? tokens[g].counting : 0;
  }
  if (chosen_counting > 0) observed.tokens_per_token = idle_counting / chosen_counting;
  if (all > 0) observed.fraction = computed / all;
  return observed;
}

}  // namespace tandem::learner
