// Checkpoints of NativeTrainer: a rank reads the newest complete one of the run, which all ranks
// must agree on; rank 0 alone writes them, with the moments that the other ranks send. A checkpoint
// that does not fit the job is refused with the reason why.
#include <algorithm>
#include <utility>

#include "actors/learner/native_trainer.h"
#include "actors/learner/trainer_checkpoint.h"
#include "actors/model/parameters.h"
#include "runtime/base/check.h"
#include "runtime/base/digest.h"

namespace tandem::learner {
namespace {

Error invalid(std::string message, std::string where) {
  return {.code = ErrorCode::kInvalid,
          .message = std::move(message),
          .where = std::move(where),
          .help = {}};
}

}  // namespace

Result<void> NativeTrainer::load(const std::filesystem::path& directory,
                                 const TrainerState& state) {
  Result<model::ModelInfo> info = model::load_model_info(directory);
  if (!info) return Error{.message = info.error().message, .where = info.error().where};
  const auto refuse = [&](const char* why) { return invalid(why, directory.string()); };
  info->config.dtype = model_.dtype;  // the files are f32 master weights, fit for any dtype
  if (!(info->config == model_)) return refuse("it is of another model");
  if (holds_other_dtype(directory, state))
    return refuse("its reference or older versions were published in another model.dtype");
  if (state.seed != config_.seed) return refuse("it is of a job with another seed");
  if (weights_.reference() != nullptr && state.reference_checksum == 0)
    return refuse("it has no reference weights, which use_kl_loss and use_kl_in_reward need");
  if (auto read = load_master(directory, state); !read) return read;
  if (auto read = load_moments(directory, state); !read) return read;
  if (weights_.reference() != nullptr) {
    auto read =
        read_array(reference_file(directory), state.reference_checksum, weights_.reference_bytes());
    if (!read) return read;
    weights_.install_reference(stream_);
  }
  if (auto read = load_older(directory, state); !read) return read;
  memory_.optimizer.set_steps(state.optimizer_steps);
  skipped_ = state.skipped;
  weights_.loaded(stream_);
  take_probe();
  return {};
}

// Loads into the existing weights: a second model would not fit beside a large one.
Result<void> NativeTrainer::load_master(const std::filesystem::path& directory,
                                        const TrainerState& state) {
  const device::Arena& weights = weights_.begin_load();
  const auto read = model::load_weights(directory, {model_, weights, threads_.get()});
  if (!read) return Error{.message = read.error().message, .where = read.error().where};
  if (checksum64(weights.bytes()) == state.weights_checksum) return {};
  return Error{.message = "its weights do not have the checksum they were written with",
               .where = directory.string()};
}

// Reference and older versions are stored as published, in the dtype of the job that wrote them.
bool NativeTrainer::holds_other_dtype(const std::filesystem::path& directory,
                                      const TrainerState& state) const {
  model::ModelConfig other = model_;
  other.dtype = other.dtype == device::DType::kF32 ? device::DType::kBF16 : device::DType::kF32;
  const PolicyVersion newest{state.step.value - 1};
  for (const auto& file : {reference_file(directory), older_file(directory, newest)}) {
    std::error_code none;
    if (std::filesystem::file_size(file, none) == published_manifest(other).bytes_total)
      return true;
  }
  return false;
}

Result<void> NativeTrainer::load_moments(const std::filesystem::path& directory,
                                         const TrainerState& state) {
  const auto moments = memory_.optimizer.host_moments();
  if (!moments) return moments.error();
  if (auto read = read_array(m_file(directory), state.m_checksum, moments->m); !read) return read;
  if (auto read = read_array(v_file(directory), state.v_checksum, moments->v); !read) return read;
  memory_.optimizer.put(stream_, *moments);
  return {};
}

// Ranks other than 0 read the older versions too: all must agree on which checkpoint is whole.
Result<void> NativeTrainer::load_older(const std::filesystem::path& directory,
                                       const TrainerState& state) {
  older_.clear();
  const std::int64_t held = std::ssize(state.older_checksums);
  const std::int64_t wanted = std::min(config_.older_versions, state.step.value);
  if (held < wanted)
    return invalid("it holds " + std::to_string(held) + " older versions of the weights, not the " +
                       std::to_string(wanted) + " that the job's fixed lag needs",
                   directory.string());
  for (std::int64_t back = wanted; back > 0; --back) {
    const PolicyVersion version{state.step.value - back};
    std::vector<std::byte> bytes(weights().size());
    const std::uint64_t checksum = state.older_checksums[static_cast<std::size_t>(held - back)];
    if (auto read = read_array(older_file(directory, version), checksum, bytes); !read) return read;
    if (gang_.rank() == 0) older_.push_back(std::move(bytes));
  }
  return {};
}

Result<std::optional<StepId>> NativeTrainer::restore() {
  if (gang_.rank() == 0)
    if (auto told = gang_.command(GangCommand::kRestore, {}); !told) return told.error();
  if (auto settled = settle_weights(); !settled) return settled.error();
  if (gang_.rank() == 0) {
    auto claim = claim_checkpoints(config_.checkpoints);
    if (!claim) return claim.error();
    saves_.claim = *std::move(claim);
  }
  const auto state = read_checkpoint(
      config_.checkpoints, [this](const std::filesystem::path& directory, const TrainerState& s) {
        return load(directory, s);
      });
  if (!state) return state.error();
  std::optional<StepId> restored;
  if (*state) {
    restored = step_ = (*state)->step;
    if (config_.checkpoints.resume == ResumeMode::kAuto)
      saves_.refused = checkpoints_after(config_.checkpoints, step_);
    untrained_ = false;
  } else if (untrained_) {
    start_rl();  // a damaged checkpoint may have left its moments behind
  } else {
    return Error{.message = "there is no checkpoint to go back to: the learner has to start again"};
  }
  const std::string mine = (restored ? std::to_string(restored->value) : "none") + " " +
                           std::to_string(checksum64(weights_.host().bytes()));
  if (auto same = gang_.agree(mine, "the weights to start from"); !same) return same.error();
  return restored;
}

// `to` is null on the ranks that do not write the checkpoint.
Result<void> NativeTrainer::fetch_moments(const Optimizer::HostMoments* to) {
  if (auto settled = settle_weights(); !settled) return settled;
  if (sharded_) return sharded_->gather_moments(stream_, memory_.optimizer, memory_.gradients, to);
  memory_.optimizer.fetch(stream_, *to);
  return {};
}

std::string NativeTrainer::weights_sha256() {
  weights_.fetch(stream_);
  return weights_.host_sha256();
}

Result<SavedCheckpoint> NativeTrainer::save() {
  const auto moments = memory_.optimizer.host_moments();
  if (!moments) return moments.error();
  if (sharded_)
    if (auto told = gang_.command(GangCommand::kSave, {}); !told) return told.error();
  if (auto fetched = fetch_moments(&*moments); !fetched) return fetched.error();
  const device::Arena& host = weights_.fetch(stream_);
  CheckpointContent content{.state = {.step = step_,
                                      .optimizer_steps = memory_.optimizer.steps(),
                                      .seed = config_.seed,
                                      .skipped = skipped_},
                            .weights = host.bytes(),
                            .m = moments->m,
                            .v = moments->v,
                            .reference = weights_.reference_bytes(),
                            .older = {older_.begin(), older_.end()},
                            .save_model = [&](const std::filesystem::path& directory) {
                              return model::save_model(directory, {model_, host, model_directory_});
                            }};
  CheckpointConfig checkpoints = config_.checkpoints;
  checkpoints.keep = saves_.kept;
  checkpoints.refused = saves_.refused;
  checkpoints.claim = saves_.claim;
  const auto path = write_checkpoint(checkpoints, std::move(content));
  if (!path) return path.error();
  saves_.refused.clear();  // they are gone, or written anew
  return SavedCheckpoint{step_, path->string(), weights_.host_sha256()};
}

}  // namespace tandem::learner
