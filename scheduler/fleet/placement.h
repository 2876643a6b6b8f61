// Placement: which node runs each rank, and on which of the node's GPUs.
//
//   PACK    a gang goes to one node where one holds it, to the node that it fills best; else to as
//           few nodes as a greedy choice finds. A share of a GPU goes where the least is left.
//   SPREAD  each rank goes where the most is left, of nodes as of GPUs.
//
// Pure functions of the nodes' free resources. The result is exact where the ranks asked for
// together have one shape. Several shapes are packed largest first, which can miss a packing that
// only just exists. Not responsible for the reasons why a job can never be placed
// (fits_ever.h).
//
// PL-1  No node is given more than it has free.
// PL-2  Every rank of every gang is placed, or none.
// PL-3  A share lies on one GPU; a whole GPU is not shared.
// PL-4  The ranks that meet in communicators of NCCL go to nodes that have NCCL, of one version.
//       They get a share of a GPU only where NCCL lets its ranks share one.
// PL-5  No rank goes to a cordoned node or GPU. A rank for which there is no other waits; it is not
//       infeasible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.h"
#include "scheduler/fleet/free_room.h"
#include "scheduler/fleet/lifecycle.h"
#include "scheduler/fleet/placement_input.h"

namespace tandem::scheduler {

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

// The same on room that is kept: takes what it gives; where that fails, `room` stays as it was.
std::variant<std::vector<Assignment>, Reason> place_all(FreeRoom& room,
                                                        std::span<const Gang> gangs);
// Places one gang. Calls for one gang after another give the same as place() of each on the nodes
// that are left.
std::variant<Assignment, Reason> place_next(FreeRoom& room, const Gang& gang);

// Why all of these together cannot have room, where a look at the sums shows it: `counts[i]` gangs
// like `alike[i]` need more than all nodes have free. It is the reason that place_all() would give.
std::optional<Reason> short_of(const FreeRoom& room, std::span<const Gang> alike,
                               std::span<const std::int64_t> counts);

// The most actors that a role may have: in the job file and by `tandem scale`.
inline constexpr std::int32_t kReplicasMax = 4096;

// How many actors a role may have: both bounds are included.
struct ReplicaBounds {
  std::int32_t least = 1;
  std::int32_t most = kReplicasMax;
};
inline constexpr ReplicaBounds kTrainingReplicas{};
inline constexpr ReplicaBounds kProgramReplicas{.least = 0, .most = 1024};  // for users' programs

// Reads `count` as a user wrote it: kInvalid, with the role, the number and the range, unless it is
// a whole number within the bounds.
Result<std::int32_t> replicas_of(std::string_view role, std::string_view count,
                                 ReplicaBounds bounds = kTrainingReplicas);

// One gang per actor, named "JOB/ROLE/NUMBER".
std::vector<Gang> gangs_of(std::span<const RoleDemand> roles, const std::string& job);

}  // namespace tandem::scheduler
