#include "actors/exchange/figure_history.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "actors/messages/group_tokens.h"

namespace tandem::exchange {

FigureHistory::FigureHistory(const FigureImage& image)
    : evaluated_(image.evaluated),
      limits_reached_{image.samples_full, image.metrics_thinned},
      generated_(image.generated) {
  for (const DigestImage& one : image.digests) digests_[one.step] = one.weights_sha256;
  for (const TrainedImage& one : image.trained) trained_[one.step] = one.totals;
  for (const ScoredImage& one : image.scored) rewards_[one.group] = one.rewards;
  for (const RewardMeanImage& one : image.reward_means) reward_means_[one.step] = one.mean;
  statistics_.evaluations_failed = image.evaluations_failed;
  statistics_.work = image.work;
  for (const double seconds : image.publish_seconds) statistics_.add_publish_seconds(seconds);
  statistics_.lineages = image.lineages;
}

FigureImage FigureHistory::image() const {
  FigureImage image{
      .evaluated = evaluated_,
      .evaluations_failed = statistics_.evaluations_failed,
      .samples_full = limits_reached_.samples,
      .metrics_thinned = limits_reached_.metrics,
      .generated = generated_,
      .work = statistics_.work,
      .publish_seconds = {statistics_.publish_seconds.begin(), statistics_.publish_seconds.end()},
      .lineages = statistics_.lineages};
  for (const auto& [step, digest] : digests_) image.digests.push_back({step, digest});
  for (const auto& [step, totals] : trained_) image.trained.push_back({step, totals});
  for (const auto& [group, rewards] : rewards_) image.scored.push_back({group, rewards});
  for (const auto& [step, mean] : reward_means_) image.reward_means.push_back({step, mean});
  return image;
}

void FigureHistory::forget_below(StepId checkpoint, const BestBy& best) {
  forget_evaluations({std::numeric_limits<std::int64_t>::max()}, best);
  forget_steps_below(checkpoint);
}

void FigureHistory::sum_up_below(StepId checkpoint, const BestBy& best) {
  forget_evaluations({checkpoint.value}, best);
  forget_steps_below(checkpoint);
}

void FigureHistory::forget_steps_below(StepId checkpoint) {
  trained_.erase(trained_.begin(), trained_.lower_bound(checkpoint));
  // The mean of the step before is that of the checkpoint, and so is the newest digest up to it.
  reward_means_.erase(reward_means_.begin(),
                      reward_means_.lower_bound(StepId{checkpoint.value - 1}));
  const auto after = digests_.upper_bound(checkpoint);
  if (after != digests_.begin()) digests_.erase(digests_.begin(), std::prev(after));
}

void FigureHistory::forget_evaluations(PolicyVersion newest, const BestBy& best) {
  std::vector<const EvaluationEnded*> old;
  std::map<EvaluationKind, const EvaluationEnded*> last;
  for (const EvaluationEnded& one : evaluated_)
    if (one.version <= newest) old.push_back(last[one.kind] = &one);
  if (old.size() < 2 * kEvaluationsKept) return;
  const auto best_one = statistics(StepId{newest.value}, 0, best).best;
  const EvaluationEnded* const first_kept = *(old.end() - kEvaluationsKept);
  std::vector<EvaluationEnded> kept;
  for (const EvaluationEnded& one : evaluated_)
    if (&one >= first_kept || one.version > newest || last[one.kind] == &one ||
        (best_one && one.version == best_one->version))
      kept.push_back(one);
    else
      statistics_.evaluations_failed += one.all.failed;
  evaluated_ = std::move(kept);
}

void FigureHistory::on(const GroupGenerated& event) {
  generated_ += messages::completion_tokens(event.header);
}

void FigureHistory::on(const StepTrained& event) {
  double reward = 0;
  std::size_t trajectories = 0;
  for (const GroupId group : event.groups) {
    const auto scored = rewards_.extract(group);
    if (!scored) continue;
    for (const float one : scored.mapped()) reward += one;
    trajectories += scored.mapped().size();
  }
  if (trajectories > 0) reward_means_[event.step] = reward / static_cast<double>(trajectories);
}

void FigureHistory::on(const LiveDiscarded& event) {
  for (const GroupId group : event.groups) rewards_.erase(group);
}

void FigureHistory::on(const TotalsNoted& event) {
  trained_[event.step] = event.totals.trained;
  statistics_.work = event.totals.work;
  generated_ = 0;
  if (event.totals.publish_seconds) statistics_.add_publish_seconds(*event.totals.publish_seconds);
}

void FigureHistory::for_evaluations(StepId checkpoint, std::int64_t steps_total,
                                    const auto& take) const {
  for (const EvaluationEnded& one : evaluated_) {
    if (one.version.value > checkpoint.value) continue;
    // A run whose total steps were raised had its last evaluation at the earlier end.
    const bool of_earlier_end =
        one.kind == EvaluationKind::kFinal && one.version.value < steps_total;
    take(of_earlier_end ? EvaluationKind::kPeriodic : one.kind, one);
  }
}

RunStatistics FigureHistory::statistics(StepId checkpoint, std::int64_t steps_total,
                                        const BestBy& best) const {
  RunStatistics statistics = statistics_;
  std::erase_if(statistics.lineages, [&](StepId step) { return step >= checkpoint; });
  if (const auto at = trained_.find(checkpoint); at != trained_.end())
    statistics.trained = at->second;
  if (const auto after = digests_.upper_bound(checkpoint); after != digests_.begin())
    statistics.weights_sha256 = std::prev(after)->second;
  const auto mean = reward_means_.find(StepId{checkpoint.value - 1});
  if (mean != reward_means_.end()) statistics.batch.rewards.mean = mean->second;
  for_evaluations(checkpoint, steps_total, [&](EvaluationKind kind, const EvaluationEnded& one) {
    statistics.add_evaluation({kind, one.version, figures_of(one)}, best);
  });
  return statistics;
}

std::vector<EvaluationKind> FigureHistory::evaluated(StepId checkpoint,
                                                     std::int64_t steps_total) const {
  std::set<EvaluationKind> kinds;
  for_evaluations(checkpoint, steps_total,
                  [&](EvaluationKind kind, const EvaluationEnded&) { kinds.insert(kind); });
  return {kinds.begin(), kinds.end()};
}

}  // namespace tandem::exchange
