// Checkpoints on disk. `step-N/` is a Hugging Face directory plus `trainer/`, which holds
// everything else that a bit-exact continuation needs. A checkpoint is written under a temporary
// name, synced and renamed, so a directory named step-N is whole. Damage that happens later is
// found by checksums when the checkpoint is read.
//
//   CP-1  A failed or killed write leaves every earlier checkpoint as it was.
//   CP-2  A damaged checkpoint is never loaded: the log names it, and the next older one is taken.
//   CP-3  A learner that was stopped, and wakes up when another one has taken its run over, neither
//         writes nor removes a checkpoint: that one has claimed them before it read one, or, where
//         the disk took nothing then, before it saves one.
//
// This file knows bytes and files, not their meaning. Logs (a refused checkpoint is a warning).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/learner/skipped_steps.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::learner {

// trainer/state.bin, with the checksums of everything else.
struct TrainerState {
  std::uint32_t format = 3;
  // The checkpoint covers every step below this one. It is also the place in the lr schedule and in
  // the journal, whose rows tell the state of each group as of that step.
  StepId step;
  std::uint64_t optimizer_steps = 0;  // AdamW's t
  std::uint64_t seed = 0;             // all randomness is derived from it and the step
  std::uint64_t weights_checksum = 0;
  std::uint64_t m_checksum = 0;          // of trainer/m.bin: AdamW's first moments
  std::uint64_t v_checksum = 0;          // of trainer/v.bin: AdamW's second moments
  std::uint64_t reference_checksum = 0;  // of trainer/reference.bin; 0: there is none
  std::vector<std::uint64_t>
      older_checksums;   // of trainer/version-N.bin, N = step - size … step - 1
  SkippedSteps skipped;  // zeros in a checkpoint of format 2
};
TANDEM_WIRE(TrainerState, format, step, optimizer_steps, seed, weights_checksum, m_checksum,
            v_checksum, reference_checksum, older_checksums, skipped)

struct CheckpointContent {
  TrainerState state;                             // checksums are filled in by write_checkpoint
  std::span<const std::byte> weights;             // the arena, for its checksum
  std::span<const std::byte> m, v;                // AdamW's moments
  std::span<const std::byte> reference;           // empty: none
  std::vector<std::span<const std::byte>> older;  // the arenas of versions step - size … step - 1
  // Writes the Hugging Face directory.
  std::function<Result<void>(const std::filesystem::path&)> save_model;
};

// Claims the checkpoints of config.directory for this learner (CP-3), with an id that is unique.
// Where the disk can be read and not be written for now, the claim is only begun:
// write_checkpoint() makes it, unless another learner has made one meanwhile.
Result<CheckpointClaim> claim_checkpoints(const CheckpointConfig& config);

// Writes step-N, replacing a checkpoint of that name. Then removes later checkpoints, which belong
// to a course of training that is repeated, those that config.refused names, and all but the newest
// keep_max of the others and those that config.keep names. Returns the path of step-N. Fails with
// kUnauthorised where another learner has the claim, and with the disk's error where a claim that
// is only begun cannot be made.
Result<std::filesystem::path> write_checkpoint(const CheckpointConfig& config,
                                               CheckpointContent content);

// Loads one checkpoint. An Error refuses the checkpoint: with the code kInvalid because it belongs
// to another job, with any other code because it is damaged.
using CheckpointLoader =
    std::function<Result<void>(const std::filesystem::path& directory, const TrainerState& state)>;

// Reads a checkpoint as the resume mode says; nothing when there is none to resume. With kPath
// every error is final. With kAuto a damaged checkpoint is skipped with a warning, and only if all
// are damaged the error of the newest is returned. A checkpoint of another job is an Error in both
// modes: going on without it would train from the beginning and remove that job's checkpoints.
Result<std::optional<TrainerState>> read_checkpoint(const CheckpointConfig& config,
                                                    const CheckpointLoader& load);

// The checkpoints of later steps than `step`, ascending: damaged ones, where `step` is that of the
// checkpoint that was just read.
std::vector<StepId> checkpoints_after(const CheckpointConfig& config, StepId step);

// Used by a CheckpointLoader: reads a file of trainer/ straight into `out`. Errors: the file has
// another size than `out`, or its content another checksum. After an Error the content of `out` is
// undefined.
Result<void> read_array(const std::filesystem::path& file, std::uint64_t checksum,
                        std::span<std::byte> out);
std::filesystem::path m_file(const std::filesystem::path& checkpoint);
std::filesystem::path v_file(const std::filesystem::path& checkpoint);
std::filesystem::path reference_file(const std::filesystem::path& checkpoint);
std::filesystem::path older_file(const std::filesystem::path& checkpoint, PolicyVersion version);

}  // namespace tandem::learner
