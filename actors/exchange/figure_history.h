// The figures of a run that its journal tells: totals, evaluations, digests of checkpoints. An
// exchange keeps them as it records its events, and a reader of the journal has the same ones, so
// that a run that goes on loses no figure. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange/file_limits.h"
#include "actors/exchange/run_statistics.h"
#include "actors/exchange/state/journal_event.h"
#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::exchange {

struct DigestImage {
  StepId step;
  std::string weights_sha256;
};
TANDEM_WIRE(DigestImage, step, weights_sha256)

struct TrainedImage {
  StepId step;
  TrainedTotals totals;
};
TANDEM_WIRE(TrainedImage, step, totals)

struct RewardMeanImage {
  StepId step;
  double mean = 0;
};
TANDEM_WIRE(RewardMeanImage, step, mean)

struct ScoredImage {
  GroupId group;
  std::vector<float> rewards;
};
TANDEM_WIRE(ScoredImage, group, rewards)

struct FigureImage {
  std::vector<EvaluationEnded> evaluated;
  std::int64_t evaluations_failed = 0;
  bool samples_full = false, metrics_thinned = false;
  std::uint64_t generated = 0;
  std::vector<DigestImage> digests;
  std::vector<TrainedImage> trained;
  std::vector<ScoredImage> scored;
  std::vector<RewardMeanImage> reward_means;
  WorkTotals work;
  std::vector<double> publish_seconds;
  std::vector<StepId> lineages;
};
TANDEM_WIRE(FigureImage, evaluated, evaluations_failed, samples_full, metrics_thinned, generated,
            digests, trained, scored, reward_means, work, publish_seconds, lineages)

// Give take() all events of the journal in their order, or those after an image.
class FigureHistory {
 public:
  FigureHistory() = default;
  explicit FigureHistory(const FigureImage& image);

  void take(const JournalEvent& event) {
    std::visit([this](const auto& what) { on(what); }, event);
  }
  FigureImage image() const;
  // No checkpoint below this one is asked for any more, and of its evaluations only the best one,
  // the newest of each kind, and the newest of all.
  void forget_below(StepId checkpoint, const BestBy& best);
  // The same for a run that may still go back to that checkpoint: the evaluations of versions after
  // it are all kept, and the best one is that of the versions up to it.
  void sum_up_below(StepId checkpoint, const BestBy& best);

  // The totals and evaluations of the run so far; those of training and evaluation, and the mean
  // reward of the newest step, as of the checkpoint. Only an evaluation of version `steps_total` is
  // the final one: the final evaluation of an earlier, shorter end counts as a periodic one. The
  // best of them is that by `best`.
  RunStatistics statistics(StepId checkpoint, std::int64_t steps_total,
                           const BestBy& best = {}) const;
  // The kinds of the evaluations that count as of the checkpoint.
  std::vector<EvaluationKind> evaluated(StepId checkpoint, std::int64_t steps_total) const;
  // Tokens of groups that were generated after the newest totals.
  std::uint64_t generated_since_noted() const { return generated_; }
  const LimitsReached& limits_reached() const { return limits_reached_; }

 private:
  void on(const GroupGenerated& event);
  void on(const GroupScored& event) { rewards_[event.group] = event.rewards; }
  void on(const StepTrained& event);
  void on(const GroupDiscarded& event) { rewards_.erase(event.group); }
  void on(const LiveDiscarded& event);
  void on(const EvaluationEnded& event) { evaluated_.push_back(event); }
  void on(const TotalsNoted& event);
  void on(const CheckpointKept& event) { digests_[event.step] = event.weights_sha256; }
  void on(const LineageBegan& event) { statistics_.lineages.push_back(event.step); }
  void on(const SamplesFull&) { limits_reached_.samples = true; }
  void on(const MetricsThinned&) { limits_reached_.metrics = true; }
  template <class Other>
  void on(const Other&) {}  // no figure

  // Of the evaluations of versions up to `newest`.
  void forget_evaluations(PolicyVersion newest, const BestBy& best);
  void forget_steps_below(StepId checkpoint);
  // Calls `take(kind, evaluation)` for those that count as of the checkpoint, oldest first.
  void for_evaluations(StepId checkpoint, std::int64_t steps_total, const auto& take) const;

  std::vector<EvaluationEnded> evaluated_;  // without those that were forgotten
  LimitsReached limits_reached_;
  std::uint64_t generated_ = 0;
  std::map<StepId, std::string> digests_;          // of the weights, by checkpoint
  std::map<StepId, TrainedTotals> trained_;        // by the step that they were noted at
  std::map<GroupId, std::vector<float>> rewards_;  // for scored groups, until they are trained
  std::map<StepId, double> reward_means_;          // by the step that was trained
  RunStatistics statistics_;                       // without what hangs on the checkpoint
};

}  // namespace tandem::exchange
