#include "actors/learner/trainer_memory.h"

#include <string>

#include "actors/learner/packing.h"
#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"

namespace tandem::actors {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

}  // namespace

std::vector<MemoryPart> trainer_memory(const ModelConfig& model, const TrainerConfig& config,
                                       runtime::DeviceKind device) {
  const std::size_t arena = make_manifest(model).bytes_total;
  std::vector<MemoryPart> parts{
      {"weights", arena},
      {"their copy to compute with", Weights::bytes(model, WeightsUse::kTraining, device)},
      {"gradients", arena},
      {"moments", 2 * arena}};
  if (config.algorithm.use_kl_loss)
    parts.push_back({"the reference", Weights::bytes(model, WeightsUse::kInference, device)});
  const TrainLimits limits = pack_limits(config.rows_max, config.positions_max);
  parts.push_back({"activations", TrainDecoder::workspace_bytes(model, limits, device)});
  return parts;
}

Result<void> check_trainer_memory(const std::vector<MemoryPart>& parts, std::size_t free_bytes,
                                  std::size_t total_bytes) {
  std::size_t needed = 0;
  std::string sum;
  for (const MemoryPart& part : parts) {
    needed += part.bytes;
    sum += (sum.empty() ? "" : " + ") + std::string(part.name) + " " + mebibytes(part.bytes);
  }
  if (needed + kGpuReserveBytes <= free_bytes) return {};
  return Error{ErrorCode::kOutOfMemory,
               "the learner needs " + mebibytes(needed) + " of a GPU (" + sum + "), and " +
                   mebibytes(free_bytes) + " of its " + mebibytes(total_bytes) +
                   " are free, of which " + mebibytes(kGpuReserveBytes) + " are left to CUDA",
               "learner.max_token_len",
               "lower it, for the activations; or give the learner a GPU of its own "
               "(pools.learner.gpus_per_actor: 1)"};
}

}  // namespace tandem::actors
