// The file trainer/state.bin of a checkpoint, which a disk may have damaged or which a user copied
// from elsewhere. Checked: a state that is taken has the current format and the step of its
// directory, and encodes to bytes that give the same state; one that is not is an error with a
// place.
#include "actors/learner/trainer_checkpoint.h"
#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/wire/codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

constexpr learner::TrainerState kCurrent{};

Result<std::optional<learner::TrainerState>> read(std::string_view state) {
  const auto directory = scratch_folder() / "checkpoints";
  const auto file = directory / "step-5" / "trainer" / "state.bin";
  std::filesystem::create_directories(file.parent_path());
  CHECK(write_file(file, std::as_bytes(std::span(state))).has_value());
  learner::CheckpointConfig config;
  config.directory = directory;
  return learner::read_checkpoint(
      config, [](const auto&, const learner::TrainerState&) { return Result<void>(); });
}

}  // namespace

void checkpoint(std::string_view input) {
  const auto state = read(input);
  if (!state) {
    CHECK(!state.error().message.empty());
    return;
  }
  CHECK(state->has_value());
  CHECK((*state)->step == StepId{5} && (*state)->format == kCurrent.format);
  const std::string encoded = wire::encode(**state);
  const auto again = read(encoded);
  CHECK(again.has_value() && again->has_value() && wire::encode(**again) == encoded);
}

}  // namespace tandem::fuzz
