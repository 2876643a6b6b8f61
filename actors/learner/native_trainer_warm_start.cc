// The warm start of NativeTrainer: supervised steps on records of prompt and completion, with the
// optimizer of warm_start.h, until a measurement on all records is good enough or the steps are
// over. The policy that it leaves is the one that RL starts from.
#include <cmath>
#include <utility>

#include "actors/learner/lr_schedule.h"
#include "actors/learner/native_trainer.h"
#include "actors/learner/packing.h"
#include "runtime/base/check.h"

namespace tandem::learner {

Result<double> NativeTrainer::warm_start_step() {
  const WarmStartConfig& warm = *config_.warm_start;
  const std::vector<const WarmStartRecord*> records =
      warm_start_data_->batch(warm_start_steps_, warm.batch_size);
  std::int64_t tokens = 0;
  for (const WarmStartRecord* record : records) tokens += std::ssize(record->completion);
  const auto batches =
      pack(groups_of_rank(records, gang_.rank(), gang_.ranks()), config_.rows_max, stream_.device);
  if (!batches) return batches.error();
  const LossPass::Hooks hooks = begin_gradients();
  double loss = 0;
  for (const MicroBatch& batch : *batches)
    loss += memory_.pass.add_supervised(stream_, weights_.policy(), batch, tokens,
                                        memory_.gradients, hooks_of(batch, *batches, hooks));
  if (batches->empty()) take_no_part(hooks, memory_.gradients);
  const OptimizerConfig optimizer = warm_start_optimizer(warm);
  const double lr = learning_rate(optimizer, warm_start_steps_, warm.max_steps);
  enter("commit");
  const auto norm = apply_gradients({optimizer, lr});
  if (!norm) return norm.error();
  auto counted = count_step({"warm-start step", warm_start_steps_ + 1, gang_.rank(), *norm, loss},
                            config_.nonfinite_steps_max, skipped_);
  if (!counted) return counted.error();
  double unused = 0;
  if (auto summed = gang_.reduce(std::span(&loss, 1), unused); !summed) return summed.error();
  ++warm_start_steps_;
  return loss / static_cast<double>(tokens);
}

// A completion is sampled with probability exp(sum of its log-probabilities), so the expected share
// of samples that are right needs no sampling and has no noise.
Result<NativeTrainer::Measured> NativeTrainer::measure_held_out() {
  if (auto settled = settle_weights(); !settled) return settled.error();
  const std::span<const WarmStartRecord* const> all = warm_start_data_->held_out();
  const auto batches =
      pack(groups_of_rank(all, gang_.rank(), gang_.ranks()), config_.rows_max, stream_.device);
  if (!batches) return batches.error();
  std::array<double, 3> sums{};  // probability, -log p, tokens
  for (const MicroBatch& batch : *batches) {
    const LossPass::Score score = memory_.pass.score(stream_, weights_.policy(), batch);
    sums[0] += score.probability;
    sums[1] += score.minus_log_prob;
    sums[2] += score.tokens;
  }
  double unused = 0;
  if (auto summed = gang_.reduce(sums, unused); !summed) return summed.error();
  return Measured{sums[0] / static_cast<double>(all.size()), sums[1] / sums[2]};
}

Result<WarmStartSlice> NativeTrainer::warm_start() {
  if (!config_.warm_start) {
    start_rl();
    return WarmStartSlice{.done = true};
  }
  if (gang_.ranks() > 1) enter("warm_start");
  if (gang_.rank() == 0)
    if (auto told = gang_.command(GangCommand::kWarmStart, {}); !told) return told.error();
  const WarmStartConfig& warm = *config_.warm_start;
  const Result<double> loss = warm_start_step();
  if (!loss) return loss.error();
  WarmStartSlice slice{.step = static_cast<std::int32_t>(warm_start_steps_),
                       .steps_max = static_cast<std::int32_t>(warm.max_steps),
                       .loss = *loss,
                       .steps_skipped = skipped_.total};
  const bool last = warm_start_steps_ >= warm.max_steps;
  slice.done = last;
  slice.reached = !warm.until;
  if (warm.until && (last || warm_start_steps_ % warm.eval_freq == 0)) {
    enter("warm_start");
    const Result<Measured> measured = measure_held_out();
    if (!measured) return measured.error();
    const bool by_loss = warm.until->metric == WarmStartMetric::kLoss;
    slice.metric = by_loss ? measured->loss : measured->sample_accuracy;
    slice.reached =
        by_loss ? *slice.metric <= warm.until->value : *slice.metric >= warm.until->value;
    slice.done = last || slice.reached;
  }
  if (!slice.done) return slice;
  enter("commit");
  if (auto settled = settle_weights(); !settled) return settled.error();
  start_rl();
  return slice;
}

}  // namespace tandem::learner
