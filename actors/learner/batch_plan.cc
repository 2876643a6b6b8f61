#include "actors/learner/batch_plan.h"

#include <algorithm>
#include <utility>

namespace tandem::learner {

Result<std::vector<MiniBatch>> plan_batch(const TrainBatch& batch, const PlannedGroups& planned,
                                          const TrainerConfig& config, const PlanFor& who) {
  const std::size_t groups = batch.groups.size();
  const std::size_t size = config.batch.mini_batch_groups == 0
                               ? groups
                               : static_cast<std::size_t>(config.batch.mini_batch_groups);
  std::vector<MiniBatch> plan;
  for (std::size_t first = 0; first < groups; first += size) {
    const std::size_t last = std::min(first + size, groups);
    const auto share = [&](const std::vector<bool>& of) {
      std::vector<bool> chosen(groups, false);
      for (std::size_t g = first; g < last; ++g) chosen[g] = of[g];
      return pack(share_of(batch, chosen, who.rank, who.ranks), config.rows_max, who.device);
    };
    // Dealt out separately, so that the expensive groups are spread evenly over the ranks.
    auto learning = share(planned.learns), observed = share(planned.observed);
    if (!learning) return learning.error();
    if (!observed) return observed.error();
    plan.push_back({*std::move(learning), *std::move(observed)});
  }
  return plan;
}

}  // namespace tandem::learner
