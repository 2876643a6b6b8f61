// The computed bytes come from the functions that the allocations also use (make_manifest,
// Weights::bytes, TrainDecoder::workspace_bytes). trainer_setup_test.cc compares the sum with what
// is allocated on a CPU, device_test.cc on a GPU.
#include "actors/learner/trainer_setup.h"

#include <string>
#include <utility>

#include "actors/learner/packing.h"
#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "runtime/base/check.h"
#include "runtime/device/memory.h"

namespace tandem::learner {
namespace {

Error refusal(std::string message, std::string where) {
  return {.code = ErrorCode::kInvalid,
          .message = std::move(message),
          .where = std::move(where),
          .help = {}};
}

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

std::string help_for(const TrainerConfig& config) {
  std::string help = "lower it";
  if (!config.enable_gradient_checkpointing)
    help += ", or set learner.enable_gradient_checkpointing,";
  help += " for the activations; or ";
  // Versions lie on the device for cuda_ipc, which exists to share a GPU with a rollout; "auto"
  // frees their memory.
  if (config.versions_on_device > 0) return help + "set weight_broadcast.type: auto";
  return help + "give the learner a GPU of its own (pools.learner.gpus_per_actor: 1)";
}

Result<Optimizer> allocate_optimizer(const NativeTrainerSetup& setup) {
  const auto floats =
      static_cast<std::int64_t>(setup.model.weights.manifest().bytes_total / sizeof(float));
  std::vector<collective::ShardRange> own{{.begin = 0, .end = floats}};
  if (setup.shards)
    own = shards_of_rank(cut_buckets(setup.model.config, setup.buckets), setup.shards->rank(),
                         setup.shards->size());
  return Optimizer::allocate(floats, std::move(own), setup.device);
}

}  // namespace

Result<void> check_setup(const NativeTrainerSetup& setup) {
  const int rank = setup.gang ? setup.gang->rank() : 0, ranks = setup.gang ? setup.gang->size() : 1;
  // The Gang's sums are made in host memory; between GPUs only shards can move gradients.
  CHECK(setup.device == device::DeviceKind::kCpu || ranks == 1 || setup.shards);
  CHECK(!setup.shards || (setup.shards->rank() == rank && setup.shards->size() == ranks));
  const std::int64_t model_positions = setup.model.config.max_position_embeddings;
  if (setup.config.positions_max > model_positions)
    return refusal("sequences of " + std::to_string(setup.config.positions_max) +
                       " tokens are longer than the model's max_position_embeddings of " +
                       std::to_string(model_positions),
                   "data.max_prompt_length + data.max_response_length");
  if (setup.config.warm_start && setup.records.empty())
    return refusal("the warm start has no records", "warm_start.train_files");
  // The decoder CHECKs its limits, so records from a user's file have to be checked here.
  for (const WarmStartRecord& record : setup.records) {
    const std::int64_t tokens = std::ssize(record.prompt) + std::ssize(record.completion);
    if (tokens > setup.config.positions_max)
      return refusal("a warm-start record has " + std::to_string(tokens) +
                         " tokens, more than max_prompt_length + max_response_length = " +
                         std::to_string(setup.config.positions_max),
                     "warm_start.train_files");
  }
  return {};
}

std::vector<MemoryPart> trainer_memory(const model::ModelConfig& model, const TrainerConfig& config,
                                       device::DeviceKind device, int sharing) {
  // Master weights and gradients have this size, and each of AdamW's two moments.
  const std::size_t arena = make_manifest(model).bytes_total;
  std::vector<MemoryPart> parts{
      {"weights", arena},
      {"their copy to compute with",
       model::Weights::bytes(model, model::WeightsUse::kTrainingInPlace, device)},
      {"gradients", arena},
      {"moments", 2 * arena / static_cast<std::size_t>(sharing)}};
  if (config.algorithm.needs_reference())
    parts.push_back(
        {"the reference", model::Weights::bytes(model, model::WeightsUse::kInference, device)});
  if (config.versions_on_device > 0)
    parts.push_back({"published versions", static_cast<std::size_t>(config.versions_on_device) *
                                               published_manifest(model).bytes_total});
  if (config.broadcast_bytes > 0) parts.push_back({"broadcasts", config.broadcast_bytes});
  parts.push_back(
      {"activations", model::TrainDecoder::workspace_bytes(model, pack_limits(config), device)});
  return parts;
}

Result<void> check_trainer_memory(const std::vector<MemoryPart>& parts, std::size_t free_bytes,
                                  std::size_t total_bytes, const TrainerConfig& config) {
  std::size_t needed = 0;
  std::string sum;
  for (const MemoryPart& part : parts) {
    needed += part.bytes;
    sum += (sum.empty() ? "" : " + ") + std::string(part.name) + " " + mebibytes(part.bytes);
  }
  if (needed + device::kGpuReserveBytes <= free_bytes) return {};
  return Error{ErrorCode::kOutOfMemory,
               "the learner needs " + mebibytes(needed) + " of a GPU (" + sum + "), and " +
                   mebibytes(free_bytes) + " of its " + mebibytes(total_bytes) +
                   " are free, of which " + mebibytes(device::kGpuReserveBytes) +
                   " are left to CUDA",
               "learner.max_token_len", help_for(config)};
}

Result<TrainerArenas> allocate_arenas(NativeTrainerSetup& setup) {
  auto gradients = device::Arena::allocate(setup.model.weights.manifest(), "gradients",
                                           device::operand_memory(setup.device));
  if (!gradients) return gradients.error();
  // Weights come last, because allocating them consumes setup.model.weights.
  auto optimizer = allocate_optimizer(setup);
  if (!optimizer) return optimizer.error();
  auto pass = LossPass::make(setup.model.config, setup.config, setup.device, setup.beat);
  if (!pass) return pass.error();
  auto weights = TrainerWeights::allocate({.model = setup.model.config,
                                           .device = setup.device,
                                           .reference = setup.config.algorithm.needs_reference()},
                                          std::move(setup.model.weights));
  if (!weights) return weights.error();
  return TrainerArenas{.weights = *std::move(weights),
                       .gradients = *std::move(gradients),
                       .optimizer = *std::move(optimizer),
                       .pass = *std::move(pass)};
}

}  // namespace tandem::learner
