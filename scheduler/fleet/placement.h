// Placement: which node runs each rank, and on which of the node's GPUs. All or none.
//   PACK    a gang goes to one node where one holds it, to the node that it fills best; else to as
//           few as a greedy choice finds. A share of a GPU goes where the least is left.
//   SPREAD  each rank goes where the most is left, of nodes as of GPUs.
//
// Pure. Exact where the ranks asked for together have one shape; several shapes are packed largest
// first, which can miss a packing that only just exists.
//
// PL-1  No node is given more than it has free.
// PL-2  Every rank of every gang is placed, or none.
// PL-3  A share lies on one GPU; a whole GPU is shared with nobody.
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

struct NcclFound {           // on a node, by its agent
  std::string version;       // "2.28.9"; empty: none
  bool shares_gpus = false;  // ranks of one communicator may share a GPU
  std::string absent;        // why there is none
};

struct NodeCapacity {
  std::string name;
  Resources total;  // memory 0: it announces none, and any amount fits
  Resources free;
  std::vector<std::int64_t> gpus_free_milli{};  // of each of its GPUs; free.gpu_milli together
  std::vector<std::string> gpus_unusable{};     // which else it has, and why they are not offered
  std::string gpus_absent{};                    // why it has none to offer, as its agent found
  NcclFound nccl{};
};

enum class Strategy : std::uint8_t { kPack, kSpread };

struct Gang {
  std::string actor;
  Resources per_rank;
  std::int32_t ranks = 1;
  Strategy strategy = Strategy::kPack;
  bool nccl = false;           // its ranks meet in communicators of NCCL
  std::string nccl_version{};  // that they must have; empty: one that all such gangs can have
};

struct RankPlace {
  std::string node;
  std::vector<std::int32_t> gpus;  // of the node's; empty for a rank that needs none
  bool operator==(const RankPlace&) const = default;
};

struct Assignment {
  std::string actor;
  std::vector<RankPlace> ranks;
};

// Assignments in the order of `gangs`, or why not: WaitingForCapacity, or InfeasibleShape where a
// rank fits no node even when it is empty.
std::variant<std::vector<Assignment>, Reason> place(std::span<const NodeCapacity> nodes,
                                                    std::span<const Gang> gangs);

// The same for one gang alone, which takes its place from `room`; an exact stand-in for place() of
// one gang after another, without a copy of all nodes for each.
std::variant<Assignment, Reason> place_next(std::vector<NodeCapacity>& room, const Gang& gang);

// How many actors a role may have: in the job file and by `tandem scale`.
inline constexpr std::int32_t kReplicasMax = 4096;

// `count` as a user wrote it: kInvalid, with the role, the number and the range, unless it is a
// whole number from 1 to kReplicasMax.
Result<std::int32_t> replicas_of(std::string_view role, std::string_view count);

// One role of a job, as the job file asks for it. A key is empty where the count can't be lowered.
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
  MemoryDemand memory{};     // of which per_rank.memory_bytes is what is reserved
};

std::vector<Gang> gangs_of(std::span<const RoleDemand> roles, const std::string& job);

// Whether the whole job would fit if nothing else ran: kInfeasible at submit, with the arithmetic
// and, as help, the nearest fit; where memory is short, with the table of memory (memory_fit.h).
// Also where it would fit but for NCCL (check_nccl()). True where no node has joined yet: nothing
// is known then.
Result<void> fits_ever(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles,
                       std::span<const MemoryOption> options = {});

}  // namespace tandem::scheduler
