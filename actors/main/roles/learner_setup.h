// What a rank of a learner's gang begins with, whoever runs it: a rank's process, or a replay of
// all ranks in one process.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <variant>

#include "actors/job/job_spec.h"
#include "actors/learner/native_trainer.h"
#include "actors/learner/trainer_setup.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/base/result.h"

namespace tandem::app {

// Loads the model, or draws its weights, and reads the records of the warm start. The setup has no
// gang. Errors are those of input (rank_failure.h).
Result<learner::NativeTrainerSetup> learner_setup(const job::JobSpec& job,
                                                  learner::TrainerConfig config,
                                                  device::DeviceKind device);

// What the gang computes on, as a record of its batches names it: "cpu", whose instruction sets all
// give the same bits, or the GPU's name.
std::string device_name(device::DeviceKind device);

// A learner rank other than 0. Its one handler follows rank 0 and does not return until the gang
// ends.
struct Follow {};
class Follower {
 public:
  using Inbox = std::variant<Follow>;
  // `follows` is true until rank 0 has let this rank go, or the gang broke.
  Follower(std::unique_ptr<learner::NativeTrainer> trainer,
           std::shared_ptr<std::atomic<bool>> follows)
      : trainer_(std::move(trainer)), follows_(std::move(follows)) {}
  void handle(actor::Context& cx, Follow);

 private:
  std::unique_ptr<learner::NativeTrainer> trainer_;
  const std::shared_ptr<std::atomic<bool>> follows_;
};
static_assert(actor::Actor<Follower>);

}  // namespace tandem::app
