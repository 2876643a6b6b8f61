#include "actors/main/roles/planned_model.h"

#include <system_error>
#include <utility>

namespace tandem::app {

PlannedModel planned_model(model::ModelConfig config, const std::filesystem::path& directory) {
  std::error_code absent;
  const auto bytes = std::filesystem::file_size(directory / "tokenizer.json", absent);
  return {std::move(config), absent ? 0 : static_cast<std::int64_t>(bytes)};
}

device::DeviceKind planned_device(double gpus_per_actor) {
  return gpus_per_actor > 0 ? device::DeviceKind::kCuda : device::DeviceKind::kCpu;
}

void add_row(scheduler::MemoryDemand& demand, const char* name, std::int64_t bytes,
             scheduler::MemoryUse use) {
  if (bytes > 0) demand.rows.push_back({name, bytes, use});
}

void add_process(scheduler::MemoryDemand& demand, const PlannedModel* model) {
  if (model) add_row(demand, "tokenizer", model->tokenizer_bytes * kTokenizerBytesPerFileByte);
  add_row(demand, "process", kRankProcessBytes);
}

}  // namespace tandem::app
