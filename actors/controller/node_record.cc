#include "actors/controller/node_record.h"

#include <algorithm>
#include <utility>

namespace tandem::controller {
namespace {

std::size_t find(const std::vector<GpuRecord>& gpus, const std::string& uuid) {
  const auto known =
      std::ranges::find_if(gpus, [&](const GpuRecord& gpu) { return gpu.device.uuid == uuid; });
  return static_cast<std::size_t>(known - gpus.begin());
}

bool is_held(const GpuRecord& gpu) { return gpu.free_milli < scheduler::kWholeGpu; }

// The record for a GPU that has none: that of one which is gone and which nobody holds, or else a
// new one.
std::size_t place_for_new(std::vector<GpuRecord>& gpus) {
  const auto unused =
      std::ranges::find_if(gpus, [](const GpuRecord& gpu) { return gpu.gone && !is_held(gpu); });
  const auto index = static_cast<std::size_t>(unused - gpus.begin());
  if (unused == gpus.end()) gpus.emplace_back();
  return index;
}

}  // namespace

std::vector<std::int32_t> renew_gpus(NodeRecord& node, const std::vector<node::Gpu>& found) {
  if (std::ranges::none_of(node.gpus, is_held)) node.gpus.clear();
  std::vector<bool> was_there;
  for (GpuRecord& gpu : node.gpus) was_there.push_back(!std::exchange(gpu.gone, true));
  std::vector<std::size_t> at(found.size());  // of each that is found, the index of its record
  for (std::size_t i = 0; i < found.size(); ++i)
    if (at[i] = find(node.gpus, found[i].uuid); at[i] < node.gpus.size())
      node.gpus[at[i]].gone = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (at[i] >= node.gpus.size() || node.gpus[at[i]].device.uuid != found[i].uuid)
      at[i] = place_for_new(node.gpus);
    node.gpus[at[i]].device = found[i];
    node.gpus[at[i]].gone = false;
  }
  for (GpuRecord& gpu : node.gpus) {
    std::vector<node::GpuLink> links(node.gpus.size(), node::GpuLink::kUnknown);
    for (std::size_t i = 0; !gpu.gone && i < std::min(gpu.device.links.size(), at.size()); ++i)
      links[at[i]] = gpu.device.links[i];
    gpu.device.links = std::move(links);
  }
  std::vector<std::int32_t> gone;
  for (std::size_t i = 0; i < was_there.size(); ++i)
    if (was_there[i] && node.gpus[i].gone) gone.push_back(static_cast<std::int32_t>(i));
  return gone;
}

std::int32_t index_of_gpu(NodeRecord& node, const std::string& uuid) {
  const std::size_t index = find(node.gpus, uuid);
  if (index == node.gpus.size()) node.gpus.push_back({.device = {.uuid = uuid}, .gone = true});
  return static_cast<std::int32_t>(index);
}

}  // namespace tandem::controller
