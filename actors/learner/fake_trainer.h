// The trainer of simulated control-plane tests. Its weights are one number, a hash of its seed and
// of the batches trained so far, so a batch that is lost, doubled or out of order changes every
// later checksum. Steps take virtual time. Checkpoints are in a store that the test owns and that
// outlives the trainers which a simulated kill destroys.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "actors/learner/skipped_steps.h"
#include "actors/learner/trainer.h"

namespace tandem::learner {

using FakeWeights = std::array<std::uint64_t, 1>;
// All that restore() needs, as NativeTrainer's checkpoint has it (TR-2, TR-4).
struct FakeCheckpoint {
  FakeWeights weights{};
  std::deque<FakeWeights> older;  // the newest last
  SkippedSteps skipped;
};
struct FakeStore {
  std::map<StepId, FakeCheckpoint> checkpoints;
  std::vector<StepId> kept;             // the last that keep() named
  bool full = false;                    // every save fails
  int os_error = 0;                     // of that failure; ENOSPC: it passes
  ErrorCode code = ErrorCode::kFailed;  // of that failure
  int refusals = 0;  // the next so many saves fail, as on a disk with a short fault
};

struct FakeTrainerConfig {
  std::uint64_t seed = 0;
  std::int32_t warm_start_steps = 0;
  Duration warm_start_step_time{};
  Duration train_time{};  // the time of one step
  // False: the hash leaves out group ids. Under a fixed lag ids may depend on timing although the
  // trained groups do not.
  bool ids_count = true;
  std::int64_t older_versions = 0;       // as TrainerConfig's
  std::set<StepId> nonfinite;            // steps whose gradient is not finite
  std::int64_t nonfinite_steps_max = 5;  // as TrainerConfig's
};

// One rank, on one thread. Shares `store` with the test and with later trainers of the same run.
class FakeTrainer final : public Trainer {
 public:
  FakeTrainer(const FakeTrainerConfig& config, std::shared_ptr<FakeStore> store);

  Result<std::optional<StepId>> restore() override;
  StepId step() const override { return step_; }
  std::span<const std::byte> weights() const override { return std::as_bytes(std::span(weights_)); }
  std::vector<float> probe() const override { return {}; }
  Result<WarmStartSlice> warm_start() override;
  Result<TrainedStep> train(const TrainBatch& batch) override;
  std::optional<std::span<const std::byte>> older(PolicyVersion version) const override;
  void keep(std::vector<StepId> steps) override { store_->kept = std::move(steps); }
  Result<SavedCheckpoint> save() override;

 private:
  std::uint64_t checksum() const;

  const FakeTrainerConfig config_;
  const std::shared_ptr<FakeStore> store_;
  StepId step_{};
  std::int32_t warm_steps_ = 0;
  bool warm_started_ = false;
  SkippedSteps skipped_;
  FakeWeights weights_{};
  std::deque<FakeWeights> older_;
};

}  // namespace tandem::learner
