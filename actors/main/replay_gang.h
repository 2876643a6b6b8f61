// The learner of a recorded run once more, with all ranks of its gang in this process: the same
// trainers with the same settings, which are given the batches by their caller instead of an
// exchange. The run directory is read at most; checkpoints go where the caller says.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/job_spec.h"
#include "actors/learner/native_trainer.h"
#include "actors/learner/token_watch.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/result.h"

namespace tandem::app {

// Used by one thread.
class ReplayGang {
 public:
  struct Start {
    std::filesystem::path scratch;  // a folder for save()
    // The checkpoint to go on from; empty: the weights of model.path, untrained.
    std::optional<std::filesystem::path> checkpoint = {};
  };
  // Errors: those of loading the model, a GPU that is missing, and kInfeasible for a gang of
  // several GPUs, which one process does not have.
  static Result<std::unique_ptr<ReplayGang>> make(const job::JobSpec& job, const Start& start);
  ~ReplayGang();

  learner::NativeTrainer& leader() { return *leader_; }
  // Trains a batch, and returns the figures of its tokens too.
  struct Watched {
    learner::TrainedStep trained;
    std::vector<learner::WatchedCompletion> tokens;
  };
  Result<Watched> train_watched(const learner::TrainBatch& batch);
  const std::string& device() const { return device_; }

 private:
  explicit ReplayGang(int ranks);

  std::string device_;
  std::vector<learner::TokenWatch> watches_;  // one for each rank, which refers to it
  actor::ThreadedExecutor executor_;          // a thread for each rank but the leader
  actor::System system_;
  std::unique_ptr<learner::NativeTrainer> leader_;
};

}  // namespace tandem::app
