// What the learner actor drives: weights that can be warm-started, trained step by step, saved and
// restored. Two implementations: NativeTrainer (the model) and FakeTrainer (control-plane tests: no
// model, virtual time).
//
// Invariants, for both (tests/actors/learner/…)
//   TR-1  Equal weights, batches and rank counts give equal weights and reports, bit for bit.
//   TR-2  restore() after save() at step s, then the batches s, s+1, … gives the bits of the run
//         that was not interrupted.
//   TR-3  A failed save leaves every earlier checkpoint as it was.
//   TR-4  older() gives the versions that the configuration asks for, after a restore() as well.
//
// Errors: kInvalid and kInfeasible are permanent (a restart would meet them again), every other
// code is worth a restart of the gang. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "actors/learner/train_batch.h"
#include "actors/messages/learner.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::actors {

struct WarmStartSlice {
  std::int32_t step = 0;  // optimizer steps taken
  std::int32_t steps_max = 0;
  double loss = 0;                  // of the last step, per completion token
  std::uint64_t steps_skipped = 0;  // for a gradient that is not finite (skipped_steps.h)
  std::optional<double> metric;     // when it was just measured
  bool done = false;
  bool reached = true;  // once done: false if steps_max passed before `until` was met
  Duration then_wait{};
};

struct TrainedStep {
  StepReport report;           // without the seconds, which the caller measures
  std::uint64_t checksum = 0;  // checksum64 of weights(); of the rank that publishes them
  // How long the caller waits before it commits: 0 of the real trainer, which has already taken its
  // time; the fake's share of virtual time.
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

  // Forgets everything and loads the newest complete checkpoint, as the resume mode says; none:
  // the untrained weights. On an Error the weights are undefined: nothing but restore() may follow.
  virtual Result<std::optional<StepId>> restore() = 0;

  virtual StepId step() const = 0;  // the step that train() does next
  // The whole arena that is published; while a warm start goes on, not its weights.
  virtual std::span<const std::byte> weights() const = 0;

  // One optimizer step of the supervised warm start, and the measurement that falls due after it.
  // Without a warm start in the job: done at once, with 0 steps. Not after done.
  virtual Result<WarmStartSlice> warm_start() = 0;

  // batch.step == step(). On an Error the weights are undefined until restore(). A gradient that is
  // not finite is none, but for too many in a row (kInvalid): the step is done and leaves the
  // weights as they are.
  virtual Result<TrainedStep> train(const TrainBatch& batch) = 0;

  // The arena as it was at a version before step(), where the configuration keeps that many; none
  // for any other version. Valid until the next train() or restore().
  virtual std::optional<std::span<const std::byte>> older(PolicyVersion version) const = 0;

  virtual Result<SavedCheckpoint> save() = 0;  // durable when it returns
};

}  // namespace tandem::actors
