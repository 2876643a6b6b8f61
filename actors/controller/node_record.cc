#include "actors/controller/node_record.h"

#include <algorithm>

namespace tandem::controller {
namespace {

// The record of a GPU, by its uuid; else that with its index, where only the journal told of it.
std::size_t record_of(std::vector<GpuRecord>& gpus, const node::Gpu& device, std::size_t index) {
  const auto known =
      std::ranges::find(gpus, device.uuid, [](const GpuRecord& gpu) { return gpu.device.uuid; });
  if (known != gpus.end()) return static_cast<std::size_t>(known - gpus.begin());
  if (index < gpus.size() && gpus[index].device.uuid.empty()) return index;
  gpus.emplace_back();
  return gpus.size() - 1;
}

}  // namespace

void renew_gpus(NodeRecord& node, const std::vector<node::Gpu>& found) {
  const bool held = std::ranges::any_of(
      node.gpus, [](const GpuRecord& gpu) { return gpu.free_milli < scheduler::kWholeGpu; });
  if (!held) node.gpus.clear();
  for (GpuRecord& gpu : node.gpus) gpu.gone = true;
  std::vector<std::size_t> at;  // of each that is found, the index of its record
  for (std::size_t i = 0; i < found.size(); ++i) {
    at.push_back(record_of(node.gpus, found[i], i));
    node.gpus[at[i]].device = found[i];
    node.gpus[at[i]].gone = false;
  }
  for (const std::size_t record : at) {
    std::vector<node::GpuLink> links(node.gpus.size(), node::GpuLink::kUnknown);
    node::Gpu& device = node.gpus[record].device;
    for (std::size_t i = 0; i < std::min(device.links.size(), at.size()); ++i)
      links[at[i]] = device.links[i];
    device.links = std::move(links);
  }
}

}  // namespace tandem::controller
