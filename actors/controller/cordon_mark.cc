#include "actors/controller/cordon_mark.h"

#include <algorithm>
#include <vector>

#include "actors/controller/room.h"

namespace tandem::controller {

void mark_cordoned(Turn& turn, const std::string& name, NodeRecord& node, const std::string& why) {
  if (node.cordoned == why) return;
  node.cordoned = why;
  renew_room(turn.state, node);
  turn.remember(NodeCordoned{name, why});
  turn.note_change();
  turn.announce(node, "cordoned: " + why, messages::EventLevel::kWarning);
}

void mark_gpus_cordoned(Turn& turn, NodeRecord& node, std::span<const std::int32_t> gpus,
                        const std::string& why) {
  for (const std::int32_t gpu : gpus)
    turn.remember(
        GpuCordoned{node.name, node.gpus.at(static_cast<std::size_t>(gpu)).device.uuid, why});
  recall_cordoned_gpus(turn.state, node);
  renew_room(turn.state, node);
  turn.note_change();
  turn.announce(node, gpus_in_words(node, gpus) + " cordoned: " + why,
                messages::EventLevel::kWarning);
}

void unmark_gpus_cordoned(Turn& turn, const scheduler::DeathPlace& place, const std::string& why) {
  turn.state.node_deaths.forget(place);
  const auto& marks = turn.state.durable.cordoned_gpus();
  for (const std::string& uuid : place.gpus)
    if (const auto of_node = marks.find(place.node);
        of_node != marks.end() && of_node->second.contains(uuid))
      turn.remember(GpuUncordoned{place.node, uuid});
  const auto node = turn.state.nodes.find(place.node);
  if (node == turn.state.nodes.end()) return;
  std::vector<std::int32_t> gpus;
  for (std::size_t i = 0; i < node->second.gpus.size(); ++i)
    if (std::ranges::find(place.gpus, node->second.gpus[i].device.uuid) != place.gpus.end())
      gpus.push_back(static_cast<std::int32_t>(i));
  recall_cordoned_gpus(turn.state, node->second);
  renew_room(turn.state, node->second);
  turn.note_change();
  turn.announce(node->second, gpus_in_words(node->second, gpus) + " may be used again: " + why);
}

void recall_cordoned_gpus(ControllerState& state, NodeRecord& node) {
  const auto of_node = state.durable.cordoned_gpus().find(node.name);
  for (GpuRecord& gpu : node.gpus) {
    gpu.cordoned.reset();
    if (of_node == state.durable.cordoned_gpus().end()) continue;
    const auto why = of_node->second.find(gpu.device.uuid);
    if (why != of_node->second.end()) gpu.cordoned = why->second;
  }
}

bool is_automatic(const ControllerState& state, const NodeRecord& node) {
  return node.cordoned ? node.cordoned->starts_with(kAutomatic)
                       : state.durable.cordoned_gpus().contains(node.name);
}

void unmark_cordoned(Turn& turn, const std::string& name, NodeRecord& node) {
  const DurableState& durable = turn.state.durable;
  if (durable.cordoned().contains(name) || durable.cordoned_gpus().contains(name))
    turn.remember(NodeUncordoned{name});
  const bool whole = node.cordoned.has_value();
  node.cordoned.reset();
  recall_cordoned_gpus(turn.state, node);
  renew_room(turn.state, node);
  turn.state.node_deaths.forget({name});
  turn.note_change();
  turn.announce(node, whole ? "takes new actors again" : "its GPUs take new actors again");
}

std::string gpus_in_words(const NodeRecord& node, std::span<const std::int32_t> gpus) {
  std::string words;
  for (const std::int32_t gpu : gpus)
    words += (words.empty() ? "GPU " : ", GPU ") + std::to_string(gpu) + " (" +
             node.gpus.at(static_cast<std::size_t>(gpu)).device.uuid + ")";
  return words;
}

}  // namespace tandem::controller
