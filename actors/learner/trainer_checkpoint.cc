// A checkpoint directory is only ever renamed as a whole:
//
//   .step-N.CLAIM.partial -> step-N   when everything in it is written and synced; a step-N that is
//                                 there already gets the other name by the same call
//   step-N -> .step-N.removed         before it is deleted
//
// A process that is killed at any point therefore leaves complete directories under step-N and
// leftovers under names with a dot, which the next write deletes. To write in place, or to delete
// without renaming, would at times leave half a checkpoint under a name that promises a whole one.
//
// The claim is a file that the next learner replaces. It is read before each change (CP-3): what is
// left is a learner that is stopped between that look and the renaming behind it. A learner whose
// disk took no claim at its start knows by the claim that it found then whether another learner has
// come since: only if none has, it claims before its first save.
#include "actors/learner/trainer_checkpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"
#include "runtime/wire/codec.h"

namespace tandem::learner {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kAsidePrefix = ".step-";  // a directory that may be incomplete
constexpr const char* kOwner = ".owner";             // has the claim of the newest learner
constexpr std::uint64_t kOwnerBytesMax = 4096;
constexpr std::size_t kClaimCharacters = 16;
constexpr std::uint32_t kFormat = 3, kFormerFormat = 2;
// States of the former format can still be resumed.
// Format 2 ends before the counts of skipped steps.
constexpr wire::WireFields<
    TrainerState, &TrainerState::format, &TrainerState::step, &TrainerState::optimizer_steps,
    &TrainerState::seed, &TrainerState::weights_checksum, &TrainerState::m_checksum,
    &TrainerState::v_checksum, &TrainerState::reference_checksum, &TrainerState::older_checksums>
    kFormerFields{"TrainerState",
                  "format, step, optimizer_steps, seed, weights_checksum, m_checksum, v_checksum, "
                  "reference_checksum, older_checksums"};

fs::path state_file(const fs::path& checkpoint) { return checkpoint / "trainer" / "state.bin"; }

fs::path checkpoint_path(const fs::path& directory, StepId step) {
  return directory / (std::string(kPrefix) + std::to_string(step.value));
}

fs::path aside(const fs::path& directory, StepId step, std::string_view why) {
  return directory / (std::string(kAsidePrefix) + std::to_string(step.value) + std::string(why));
}

Result<void> make_directories(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return file_error("create directory", path, failed.value());
  return {};
}

Result<void> rename_path(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (failed) return file_error("rename " + from.string(), to, failed.value());
  return {};
}

// Steps of the directories named step-N, ascending.
std::vector<StepId> list_steps(const fs::path& directory) {
  std::vector<StepId> steps;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    StepId step;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step.value);
    if (parsed.ec == std::errc{} && parsed.ptr == end && step.value >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

// The claim of the newest learner; empty where none has claimed.
Result<std::string> newest_claim(const fs::path& directory) {
  auto claim = read_file(directory / kOwner, kOwnerBytesMax);
  if (!claim && claim.error().os_error == ENOENT) return std::string();
  return claim;
}

Error taken_over(const fs::path& directory) {
  return {.code = ErrorCode::kUnauthorised,
          .message = "another learner has taken the run over",
          .where = (directory / kOwner).string()};
}

// Whether no other learner has claimed the checkpoints since this one did (CP-3). Where the file of
// the claim was removed, none has: a successor would have written it anew.
Result<void> still_ours(const CheckpointConfig& config) {
  if (config.claim.id.empty()) return {};
  const auto claim = newest_claim(config.directory);
  if (!claim) return claim.error();
  if (claim->empty() || *claim == config.claim.id) return {};
  return taken_over(config.directory);
}

void remove_asides(const fs::path& directory) {
  std::error_code failed;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, failed))
    if (entry.path().filename().string().starts_with(kAsidePrefix)) found.push_back(entry.path());
  for (const fs::path& path : found) fs::remove_all(path, failed);
}

// Makes a claim that is only begun, or finds that it is made. Leftovers go first, since they may be
// what fills the disk; no learner has come that could write one of them (CP-3).
Result<void> hold_claim(const CheckpointConfig& config) {
  const CheckpointClaim& ours = config.claim;
  if (ours.id.empty()) return {};
  const auto claim = newest_claim(config.directory);
  if (!claim) return claim.error();
  if (*claim == ours.id) return {};
  if (!claim->empty() && *claim != ours.former) return taken_over(config.directory);
  remove_asides(config.directory);
  return write_file_atomic(config.directory / kOwner, ours.id);
}

// Removes checkpoints that are no longer needed. Those of later steps remain from a course of
// training that was left by resuming from an earlier checkpoint; training repeats their steps.
// A directory is renamed first, so that one that is half removed is never taken for whole.
void prune(const CheckpointConfig& config, StepId written) {
  std::vector<StepId> steps = list_steps(config.directory);
  const auto later = std::upper_bound(steps.begin(), steps.end(), written);
  std::vector<StepId> excess(later, steps.end());
  steps.erase(later, steps.end());
  const auto serves = [&](StepId step) {
    return step == written || std::ranges::count(config.refused, step) == 0;
  };
  const auto refused = std::stable_partition(steps.begin(), steps.end(), serves);
  excess.insert(excess.end(), refused, steps.end());
  steps.erase(refused, steps.end());
  const std::size_t keep = static_cast<std::size_t>(std::max<std::int64_t>(config.keep_max, 1));
  if (steps.size() > keep)
    std::copy_if(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(keep),
                 std::back_inserter(excess),
                 [&](StepId step) { return std::ranges::count(config.keep, step) == 0; });
  for (const StepId step : excess) {
    if (!still_ours(config)) return;
    const fs::path path = checkpoint_path(config.directory, step);
    const Result<void> renamed = rename_path(path, aside(config.directory, step, ".removed"));
    if (!renamed) log::warn("checkpoint={} kept: {}", path.string(), renamed.error().message);
  }
  if (still_ours(config)) remove_asides(config.directory);
}

// Writes everything into `path`, each file synced, and fills in the checksums of the state.
Result<void> write_parts(const fs::path& path, CheckpointContent& content) {
  if (Result<void> done = make_directories(path / "trainer"); !done) return done;
  if (Result<void> done = content.save_model(path); !done) return done;
  if (Result<void> done = write_file_atomic(m_file(path), content.m); !done) return done;
  if (Result<void> done = write_file_atomic(v_file(path), content.v); !done) return done;
  TrainerState& state = content.state;
  state.format = kFormat;
  state.weights_checksum = checksum64(content.weights);
  state.m_checksum = checksum64(content.m);
  state.v_checksum = checksum64(content.v);
  state.older_checksums.clear();
  PolicyVersion version{state.step.value - std::ssize(content.older)};
  for (const std::span<const std::byte> older : content.older) {
    state.older_checksums.push_back(checksum64(older));
    if (Result<void> done = write_file_atomic(older_file(path, version), older); !done) return done;
    ++version.value;
  }
  state.reference_checksum = 0;
  if (!content.reference.empty()) {
    state.reference_checksum = checksum64(content.reference);
    if (Result<void> done = write_file_atomic(reference_file(path), content.reference); !done)
      return done;
  }
  // The state is written last, because it has the checksums of all other files.
  if (Result<void> done = write_file_atomic(state_file(path), wire::encode(state)); !done)
    return done;
  return sync_directory(path);
}

// Where step-N is there already, the two directories exchange their names in one call, so that a
// kill at any point leaves a whole step-N; the older one is deleted with the other leftovers. A
// file system that has no such call needs two renames, and a kill between them leaves no step-N.
Result<void> move_into_place(const fs::path& directory, StepId step, const fs::path& written) {
  const fs::path final_path = checkpoint_path(directory, step);
  if (::renameat2(AT_FDCWD, written.c_str(), AT_FDCWD, final_path.c_str(), RENAME_EXCHANGE) == 0)
    return sync_directory(directory);
  std::error_code failed;
  const bool replaces = fs::exists(final_path, failed);
  const fs::path older = aside(directory, step, ".replaced");
  if (replaces) {
    if (Result<void> moved = rename_path(final_path, older); !moved) return moved;
  }
  if (Result<void> done = rename_path(written, final_path); !done) {
    if (replaces) (void)rename_path(older, final_path);
    return done;
  }
  return sync_directory(directory);
}

// Reads format 2 or the current one. A format-2 state is tried first, because its shorter list of
// fields fits no current state.
Result<TrainerState> decode_state(std::string_view bytes) {
  TrainerState former;
  wire::WireReader in(bytes, {});
  if (wire::wire_detail::decode_fields(in, former, kFormerFields) && in.finish() &&
      former.format == kFormerFormat) {
    former.format = kFormat;
    return former;
  }
  return wire::decode<TrainerState>(bytes);
}

Result<TrainerState> read_one(const fs::path& checkpoint, const CheckpointLoader& load) {
  const Result<std::string> bytes = read_file(state_file(checkpoint));
  if (!bytes) return bytes.error();
  Result<TrainerState> state = decode_state(*bytes);
  if (!state)
    return Error{.message = "it is damaged: " + state.error().message,
                 .where = state_file(checkpoint).string()};
  if (state->format != kFormat)
    return Error{.message = "it has format " + std::to_string(state->format) + ", not " +
                            std::to_string(kFormat),
                 .where = state_file(checkpoint).string()};
  if (Result<void> loaded = load(checkpoint, *state); !loaded) return loaded.error();
  return state;
}

Error cannot_resume(const fs::path& checkpoint, const Error& why) {
  return {.code = ErrorCode::kInvalid,
          .message = "cannot resume from checkpoint " + checkpoint.string() + ": " + why.message,
          .where = why.where,
          .help = why.help};
}

}  // namespace

fs::path m_file(const fs::path& checkpoint) { return checkpoint / "trainer" / "m.bin"; }
fs::path v_file(const fs::path& checkpoint) { return checkpoint / "trainer" / "v.bin"; }
fs::path reference_file(const fs::path& checkpoint) {
  return checkpoint / "trainer" / "reference.bin";
}
fs::path older_file(const fs::path& checkpoint, PolicyVersion version) {
  return checkpoint / "trainer" / ("version-" + std::to_string(version.value) + ".bin");
}

Result<CheckpointClaim> claim_checkpoints(const CheckpointConfig& config) {
  const auto former = newest_claim(config.directory);
  CheckpointClaim claim{.id = random_secret().substr(0, kClaimCharacters),
                        .former = former ? *former : ""};
  auto done = make_directories(config.directory);
  if (done) done = write_file_atomic(config.directory / kOwner, claim.id);
  if (done) return claim;
  if (!lacks_disk(done.error())) return done.error();
  if (!former) return former.error();
  log::warn("checkpoints={} not claimed until the first save: {}", config.directory.string(),
            done.error().message);
  return claim;
}

Result<fs::path> write_checkpoint(const CheckpointConfig& config, CheckpointContent content) {
  const StepId step = content.state.step;
  const fs::path partial = aside(config.directory, step, "." + config.claim.id + ".partial");
  const auto failed = [&](Error error) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    if (still_ours(config)) remove_asides(config.directory);
    error.message = "cannot save checkpoint " + std::string(kPrefix) + std::to_string(step.value) +
                    ": " + error.message;
    return error;
  };
  if (Result<void> done = make_directories(config.directory); !done) return failed(done.error());
  if (Result<void> held = hold_claim(config); !held) return failed(held.error());
  remove_asides(config.directory);
  if (Result<void> done = write_parts(partial, content); !done) return failed(done.error());
  if (Result<void> ours = still_ours(config); !ours) return failed(ours.error());
  if (Result<void> done = move_into_place(config.directory, step, partial); !done)
    return failed(done.error());
  prune(config, step);
  return checkpoint_path(config.directory, step);
}

Result<std::optional<TrainerState>> read_checkpoint(const CheckpointConfig& config,
                                                    const CheckpointLoader& load) {
  if (config.resume == ResumeMode::kDisable) return std::optional<TrainerState>{};
  if (config.resume == ResumeMode::kPath) {
    Result<TrainerState> state = read_one(config.resume_path, load);
    if (state) return std::optional(*std::move(state));
    return cannot_resume(config.resume_path, state.error());
  }
  const std::vector<StepId> steps = list_steps(config.directory);
  std::optional<Error> newest;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const fs::path path = checkpoint_path(config.directory, *step);
    Result<TrainerState> state = read_one(path, load);
    // The name of a directory is no proof: a user may have copied or renamed a checkpoint.
    if (state && state->step != *step)
      state = Error{.message = "it says that it is of step " + std::to_string(state->step.value)};
    if (state) return std::optional(*std::move(state));
    // The checkpoint belongs to another job, and so would an older checkpoint of the directory.
    if (state.error().code == ErrorCode::kInvalid) return cannot_resume(path, state.error());
    log::warn("checkpoint={} refused, an older one is tried: {} {}", path.string(),
              state.error().message, state.error().where);
    if (!newest) newest = cannot_resume(path, state.error());
  }
  // To begin anew would in time remove checkpoints that may be unreadable only at the moment.
  if (newest) return *std::move(newest);
  return std::optional<TrainerState>{};
}

std::vector<StepId> checkpoints_after(const CheckpointConfig& config, StepId step) {
  std::vector<StepId> steps = list_steps(config.directory);
  std::erase_if(steps, [&](StepId one) { return one <= step; });
  return steps;
}

Result<void> read_array(const fs::path& file, std::uint64_t checksum, std::span<std::byte> out) {
  if (Result<void> read = read_file_into(file, out); !read) return read;
  if (checksum64(out) == checksum) return {};
  return Error{.message = "its content does not have the checksum it was written with",
               .where = file.string()};
}

}  // namespace tandem::learner
