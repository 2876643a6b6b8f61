// The input of placement (placement.h): nodes and their free resources, the gangs of ranks that
// need places, and the roles of a job that the gangs come from. Plain values. The facts about a
// node come from its agent, the demands of a role from the job file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/enum_names.h"
#include "scheduler/fleet/memory_demand.h"
#include "scheduler/fleet/resources.h"

namespace tandem::scheduler {

// NCCL on a node, as the node's agent found it.
struct NcclFound {
  std::string version;       // "2.28.9"; empty: none
  bool shares_gpus = false;  // ranks of one communicator may share a GPU
  std::string absent;        // why the node has none; for messages
};

// The resources that one node offers. Quantities are in the units of Resources; indices of GPUs are
// the node's own.
struct NodeCapacity {
  std::string name;
  Resources total;  // memory_bytes 0: the node announces no memory, and any amount fits
  Resources free;
  // Thousandths free on each GPU; their sum is free.gpu_milli. Where there are more of them than
  // total.gpu_milli says, some are gone, and nothing is free on those.
  std::vector<std::int64_t> gpus_free_milli{};
  std::vector<std::string> gpus_unusable{};  // other GPUs, with the reason why each is not offered
  std::string gpus_absent{};                 // why the node has no GPU to offer
  NcclFound nccl{};
  bool cordoned = false;                      // takes no rank now, whatever is free
  std::vector<std::int32_t> gpus_cordoned{};  // likewise; nothing is free on them
};

enum class Strategy : std::uint8_t { kPack, kSpread };
constexpr auto enum_names(Strategy) {
  using enum Strategy;
  return enum_name_rows<Strategy>({{kPack, "pack"}, {kSpread, "spread"}});
}

// The ranks of one actor, which are placed together.
struct Gang {
  std::string actor;
  Resources per_rank;
  std::int32_t ranks = 1;
  Strategy strategy = Strategy::kPack;
  bool nccl = false;  // its ranks are in communicators of NCCL
  // The version that its nodes must have; empty: place() chooses one for all of them
  std::string nccl_version{};
};

// One role of a job, as the job file asks for it. A key names the setting of a count or an amount,
// for the help of a refusal; it is empty where the user cannot lower that setting.
struct RoleDemand {
  std::string role;           // "rollout"
  std::int32_t replicas = 1;  // actors
  std::int32_t ranks = 1;     // ranks of each actor
  Resources per_rank;
  Strategy strategy = Strategy::kPack;
  bool nccl = false;         // Gang::nccl
  std::string replicas_key;  // "rollout.replicas"
  std::string ranks_key;     // "learner.ranks"
  std::string cpus_key;      // "pools.rollout.cpus_per_actor"
  std::string gpus_key;      // "pools.rollout.gpus_per_actor"
  MemoryDemand memory{};     // per_rank.memory_bytes is the amount reserved for it
};

}  // namespace tandem::scheduler
