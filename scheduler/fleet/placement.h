// Placement: which node runs each rank, and on which of the node's GPUs.
//
//   PACK    a gang goes to one node where one holds it, to the node that it fills best; else to as
//           few nodes as a greedy choice finds. A share of a GPU goes where the least is left.
//   SPREAD  each rank goes where the most is left, of nodes as of GPUs.
//
// Pure functions of the nodes' free resources. The result is exact where the ranks asked for
// together have one shape. Several shapes are packed largest first, which can miss a packing that
// only just exists.
//
// PL-1  No node is given more than it has free.
// PL-2  Every rank of every gang is placed, or none.
// PL-3  A share lies on one GPU; a whole GPU is not shared.
// PL-4  The ranks that meet in communicators of NCCL go to nodes that have NCCL, of one version.
//       They get a share of a GPU only where NCCL lets its ranks share one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.h"
#include "scheduler/fleet/lifecycle.h"
#include "scheduler/fleet/memory_demand.h"
#include "scheduler/fleet/resources.h"

namespace tandem::scheduler {

// NCCL on a node, as the node's agent found it.
struct NcclFound {           // on a node, by its agent
  std::string version;       // "2.28.9"; empty: none
  bool shares_gpus = false;  // ranks of one communicator may share a GPU
  std::string absent;        // why the node has none; for messages
};

// What one node offers. Quantities are in the units of Resources; indices of GPUs are the node's
// own.
struct NodeCapacity {
  std::string name;
  Resources total;  // memory_bytes 0: the node announces no memory, and any amount fits
  Resources free;
  // Thousandths free on each usable GPU; their sum is free.gpu_milli
  std::vector<std::int64_t> gpus_free_milli{};
  std::vector<std::string> gpus_unusable{};  // other GPUs, with the reason why each is not offered
  std::string gpus_absent{};                 // why the node has no GPU to offer
  NcclFound nccl{};
};

enum class Strategy : std::uint8_t { kPack, kSpread };

// The ranks of one actor, which are placed together.
struct Gang {
  std::string actor;
  Resources per_rank;
  std::int32_t ranks = 1;
  Strategy strategy = Strategy::kPack;
  bool nccl = false;  // its ranks are in communicators of NCCL
  // The version that its nodes must have; empty: place() chooses one for all such gangs
  std::string nccl_version{};
};

struct RankPlace {
  std::string node;
  std::vector<std::int32_t> gpus;  // indices of the node's GPUs; empty for a rank that needs none
  bool operator==(const RankPlace&) const = default;
};

// The places of a gang's ranks, by rank.
struct Assignment {
  std::string actor;
  std::vector<RankPlace> ranks;
};

// Places all gangs: the assignments in the order of `gangs`, or the reason why there is no
// placement. WaitingForCapacity, or InfeasibleShape where a rank fits no node even when the node is
// empty.
std::variant<std::vector<Assignment>, Reason> place(std::span<const NodeCapacity> nodes,
                                                    std::span<const Gang> gangs);

// Places one gang and takes its resources from `room`; where that fails, `room` stays as it was.
// Calls for one gang after another give the same as place() of each on the nodes that are left,
// without a copy of all nodes for each.
std::variant<Assignment, Reason> place_next(std::vector<NodeCapacity>& room, const Gang& gang);

// The most actors that a role may have: in the job file and by `tandem scale`.
inline constexpr std::int32_t kReplicasMax = 4096;

// How many actors a role may have: both bounds are included.
struct ReplicaBounds {
  std::int32_t least = 1;
  std::int32_t most = kReplicasMax;
};
inline constexpr ReplicaBounds kTrainingReplicas{};
inline constexpr ReplicaBounds kProgramReplicas{.least = 0, .most = 1024};  // of users' programs

// Reads `count` as a user wrote it: kInvalid, with the role, the number and the range, unless it is
// a whole number within the bounds.
Result<std::int32_t> replicas_of(std::string_view role, std::string_view count,
                                 ReplicaBounds bounds = kTrainingReplicas);

// One role of a job, as the job file asks for it. A key names the setting of a count or an amount,
// for the help of a refusal; it is empty where the user cannot lower that setting.
struct RoleDemand {
  std::string role;           // "rollout"
  std::int32_t replicas = 1;  // actors
  std::int32_t ranks = 1;     // of each
  Resources per_rank;
  Strategy strategy = Strategy::kPack;
  bool nccl = false;         // Gang::nccl
  std::string replicas_key;  // "rollout.replicas"
  std::string ranks_key;     // "learner.ranks"
  std::string cpus_key;      // "pools.rollout.cpus_per_actor"
  std::string gpus_key;      // "pools.rollout.gpus_per_actor"
  MemoryDemand memory{};     // per_rank.memory_bytes is the amount reserved for it
};

// One gang per actor, named "JOB/ROLE/NUMBER".
std::vector<Gang> gangs_of(std::span<const RoleDemand> roles, const std::string& job);

// Whether the whole job would fit if no other job ran. If not: kInfeasible at submit, with the
// arithmetic and, as help, the nearest change that fits; where memory is short, with the table of
// memory (memory_fit.h). Also where the job would fit if NCCL were left aside (check_nccl()).
// Without nodes the answer is yes: nothing is known before the first node joins.
Result<void> fits_ever(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles,
                       std::span<const MemoryOption> options = {});

}  // namespace tandem::scheduler
