// What the controller keeps of a node and its GPUs: plain values, which its parts change (nodes.h,
// room.h, cordon_mark.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/resources.h"

namespace tandem::controller {

// One GPU of a node. Ranks hold GPUs by their indices, so that no index changes while a rank holds
// any of them.
struct GpuRecord {
  node::Gpu device;
  std::int64_t free_milli = scheduler::kWholeGpu;  // the share that no living rank holds
  std::optional<std::string> cordoned = {};        // why; set: the GPU takes no new actor
  bool gone = false;  // the node's agent does not find it, or has not said yet what it finds

  // The share that a new rank can have.
  std::int64_t offered_milli() const {
    return cordoned || gone ? 0 : std::max<std::int64_t>(0, free_milli);
  }
};

// A node that was ever up, or on which actors of the controller before this one ran. A lost node
// keeps its record.
struct NodeRecord {
  std::string name;
  Incarnation incarnation;
  scheduler::Resources total;
  scheduler::Resources leased;  // by living ranks
  // `leased` counts all GPUs together; each record has the share of its own.
  std::vector<GpuRecord> gpus;
  std::vector<std::string> gpus_unusable;  // other GPUs, each with the reason
  std::string gpus_absent;                 // why the node has no GPU; empty if it has
  node::NodeNccl nccl;
  std::int64_t pid = 0;
  bool up = false;       // its agent is heard
  bool silent = false;   // its agent has a link and is not heard
  bool leaving = false;  // its agent has said so (NodeUp), and it takes no new actor
  bool awaited = false;  // it was up under the controller before this one, and may come back
  Time since{};          // the last change of `up`
  // Its agent has died or is silent, and ranks of it may work on: they are waited for until then.
  std::optional<Time> agent_until;
  std::optional<std::string> cordoned;  // why; set: the node takes no new actor
  Incarnation refused;                  // the last other agent of this name that was refused
  // Ranks of incarnations that are over, told to end; the node has no room before they have.
  std::set<node::RankId> unwanted;
};

// Takes what the node's agent has found. While a rank holds a GPU, each record keeps its index, and
// one that is not found is gone. Returns those that were found before and are gone now.
std::vector<std::int32_t> renew_gpus(NodeRecord& node, const std::vector<node::Gpu>& found);
// The index of the GPU with this uuid; one that has no record yet gets one, and is gone.
std::int32_t index_of_gpu(NodeRecord& node, const std::string& uuid);

}  // namespace tandem::controller
