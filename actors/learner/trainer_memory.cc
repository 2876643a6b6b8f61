#include "actors/learner/trainer_memory.h"

#include <string>

#include "actors/learner/packing.h"
#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "runtime/device/memory.h"

namespace tandem::learner {
namespace {

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

}  // namespace

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

}  // namespace tandem::learner
