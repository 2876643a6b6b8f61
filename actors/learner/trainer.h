// The interface by which the learner actor trains: weights that can be warm-started, trained step
// by step, saved and restored. There are two implementations: NativeTrainer (the model) and
// FakeTrainer (control-plane tests, without a model and in virtual time).
//
// Invariants, for both (tests/actors/learner/…)
//   TR-1  Equal weights, batches and rank counts give equal weights and reports, bit for bit.
//   TR-2  restore() after save() at step s, then the batches s, s+1, … gives the bits of the run
//         that was not interrupted.
//   TR-3  A failed save leaves every earlier checkpoint as it was.
//   TR-4  older() gives the versions that the configuration asks for, after a restore() as well.
//
// Errors: kInvalid and kInfeasible are permanent (a restart would meet them again); with every
// other code a restart of the gang may help. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/learner/train_batch.h"
#include "actors/messages/learner.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::learner {

// The result of one call of warm_start().
struct WarmStartSlice {
  std::int32_t step = 0;  // optimizer steps taken so far
  std::int32_t steps_max = 0;
  double loss = 0;                  // the last step's loss per completion token
  std::uint64_t steps_skipped = 0;  // for a gradient that is not finite (skipped_steps.h)
  std::optional<double> metric;     // when it was just measured
  bool done = false;                // the warm start is over
  bool reached = true;              // once done: false if steps_max passed before `until` was met
  Duration then_wait{};             // as TrainedStep's
};

struct TrainedStep {
  messages::StepReport report;  // without the seconds, which the caller measures
  std::uint64_t checksum = 0;   // checksum64 of weights(); 0 on ranks that do not publish
  // How long the caller waits before it commits the step. NativeTrainer gives 0, because its work
  // has already taken time; FakeTrainer gives the virtual time of the step.
  Duration then_wait{};
};

struct SavedCheckpoint {
  StepId step;
  std::string directory;
  std::string weights_sha256;  // parameter bytes in manifest order
};

class Trainer {
 public:
  virtual ~Trainer() = default;

  // Drops the current state and loads a checkpoint as the resume mode says. Returns its step, or
  // nothing when there is no checkpoint and the weights are untrained. After an Error the weights
  // are undefined and only restore() may follow.
  virtual Result<std::optional<StepId>> restore() = 0;

  virtual StepId step() const = 0;  // the step that train() does next
  // The whole arena of weights to publish. During a warm start these are still the weights before
  // it.
  virtual std::span<const std::byte> weights() const = 0;
  // The log-probabilities of probe_tokens() under weights() (actors/model/probe.h); empty where the
  // configuration asks for none.
  virtual std::vector<float> probe() const = 0;

  // One optimizer step of the supervised warm start, and the measurement that falls due after it.
  // Where the job has no warm start, it is done at once, with 0 steps. It must not be called after
  // `done`.
  virtual Result<WarmStartSlice> warm_start() = 0;

  // Trains one batch, whose step is step(). After an Error the weights are undefined until
  // restore(). A gradient that is not finite is no Error: the step is done and leaves the weights
  // as they are. Too many such steps in a row are an Error (kInvalid).
  virtual Result<TrainedStep> train(const TrainBatch& batch) = 0;

  // The arena as it was at a version before step(), if the configuration keeps that many versions;
  // nothing for any other version. Valid until the next train() or restore().
  virtual std::optional<std::span<const std::byte>> older(PolicyVersion version) const = 0;

  // Names the checkpoints that save() must not remove, beside the newest ones that it keeps anyway.
  virtual void keep(std::vector<StepId> steps) = 0;

  // Writes a checkpoint of step(), which is durable on return.
  virtual Result<SavedCheckpoint> save() = 0;
};

}  // namespace tandem::learner
