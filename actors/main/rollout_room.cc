#include "actors/main/rollout_room.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <variant>
#include <vector>

#include "actors/controller/controller_core.h"
#include "actors/main/job_shape.h"
#include "actors/main/memory_plan.h"
#include "actors/main/this_node.h"
#include "scheduler/fleet/placement.h"

namespace tandem::app {
namespace {

using nlohmann::json;

json part(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}

double amount(const json& object, const char* name) {
  const json value = part(object, name);
  return value.is_number() ? std::max(0.0, value.get<double>()) : 0;
}

std::int64_t milli(double whole) { return std::llround(1000 * std::min(whole, 1e9)); }

double key_number(const runs::JobKeys& keys, std::string_view path) {
  double value = 0;
  for (const auto& [key, text] : keys)
    if (key == path) std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

scheduler::NodeCapacity capacity_in(const json& node) {
  const json leased = part(node, "leased");
  scheduler::NodeCapacity capacity{.name = node.value("name", ""), .total = {}, .free = {}};
  capacity.total = {.cpu_milli = milli(amount(node, "cpus")),
                    .memory_bytes = static_cast<std::int64_t>(amount(node, "memory_bytes"))};
  capacity.free = capacity.total;
  capacity.free.cpu_milli -= milli(amount(leased, "cpus"));
  capacity.free.memory_bytes -= static_cast<std::int64_t>(amount(leased, "memory_bytes"));
  for (const json& gpu : part(node, "gpus")) {
    const bool open = !part(gpu, "gone").is_boolean() || !gpu.value("gone", false);
    const std::int64_t free = open && part(gpu, "cordoned").is_null()
                                  ? scheduler::kWholeGpu - milli(amount(gpu, "leased"))
                                  : 0;
    capacity.gpus_free_milli.push_back(free);
    capacity.free.gpu_milli += free;
    capacity.total.gpu_milli += scheduler::kWholeGpu;
  }
  return capacity;
}

}  // namespace

std::optional<RolloutRoom> room_on_nodes(const json& nodes, const json& job,
                                         const runs::JobKeys& keys) {
  if (!nodes.is_array() || nodes.empty()) return std::nullopt;
  std::vector<scheduler::NodeCapacity> open;
  for (const json& node : nodes)
    if (node.is_object() && part(node, "state") == "Ready" && part(node, "cordoned").is_null())
      open.push_back(capacity_in(node));
  const json memory = part(part(job, "memory"), "rollout");
  const scheduler::Gang rollout{
      .actor = "rollout",
      .per_rank = {.cpu_milli = milli(key_number(keys, "pools.rollout.cpus_per_actor")),
                   .gpu_milli = milli(key_number(keys, "pools.rollout.gpus_per_actor")),
                   .memory_bytes = static_cast<std::int64_t>(amount(memory, "reserved_bytes"))}};
  scheduler::FreeRoom room(open);
  const json up = part(part(job, "actors"), "rollout");
  // Those that wait for a place have none.
  const char* const placed = part(up, "ready").is_number() ? "ready" : "desired";
  RolloutRoom found{.rollouts = static_cast<std::int64_t>(amount(up, placed)),
                    .where = "the cluster's nodes"};
  while (found.rollouts < kRoomMost &&
         std::holds_alternative<scheduler::Assignment>(scheduler::place_next(room, rollout)))
    ++found.rollouts;
  return found;
}

std::optional<RolloutRoom> room_here(job::JobSpec job) {
  const auto machine = offered_node(Incarnation{1}, {});
  if (!machine) return std::nullopt;
  controller::ControllerCore fleet(0);
  if (!fleet.step(*machine, Time{})) return std::nullopt;
  const auto config = model::read_model_config(job.model.path);
  const auto fits = [&](std::int64_t rollouts) {
    job.rollout.replicas = rollouts;
    controller::JobShape shape = job_shape(job);
    if (config)
      shape.memory = plan_memory(job, planned_model(*config, job.model.path), Hosts::kOne);
    return fleet.accepted(shape).has_value();
  };
  // The largest number that fits: more never fit where fewer do not.
  std::int64_t most = 0;
  for (std::int64_t step = kRoomMost; step > 0; step /= 2)
    if (most + step <= kRoomMost && fits(most + step)) most += step;
  return RolloutRoom{.rollouts = most, .where = "this machine"};
}

}  // namespace tandem::app
