// The place of this process among those that mpirun, mpiexec or torchrun has started, as the
// environment tells it. Pure: the variables are given.
//
//                     rank                  processes             on this host, and how many
//   torchrun          RANK                  WORLD_SIZE            LOCAL_RANK, LOCAL_WORLD_SIZE
//   Open MPI, OMPI_…  COMM_WORLD_RANK       COMM_WORLD_SIZE       …_LOCAL_RANK, …_LOCAL_SIZE
//   MPICH, Intel MPI  PMI_RANK              PMI_SIZE              MPI_LOCALRANKID, …_LOCALNRANKS
//   PMIx              PMIX_RANK
//
// torchrun adds MASTER_ADDR, GROUP_WORLD_SIZE (its agents, one for each host) and
// TORCHELASTIC_RUN_ID; the other launchers name no address. torchrun itself listens at MASTER_PORT,
// so that this port is not for us.
//
//   HO-1  A variable that is no number, lacks its partner, or contradicts another one is refused
//         by name: no process takes a place that the launcher did not give.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::launch {

using Variables = std::map<std::string, std::string, std::less<>>;

struct RankPlace {
  std::string launcher;                   // "torchrun", for messages
  std::string variable;                   // where the rank is told
  std::int64_t rank = 0;                  // of all processes, from 0
  std::optional<std::int64_t> size = {};  // how many there are; PMIx alone does not tell it
  std::int64_t local_rank = 0;            // of the processes of this host
  // Hosts with such processes; nothing where it is not told, or hosts have different numbers.
  std::optional<std::int64_t> hosts = {};
  std::string master = {};  // MASTER_ADDR, the host of rank 0; may be empty

  // One process alone has no others to find. Where the number is not told there may be others.
  bool is_one_of_several() const { return size != 1; }
};

// Nothing where no launcher has started this process. Errors: kInvalid (HO-1).
Result<std::optional<RankPlace>> rank_place(const Variables& variables);

// Whether the variable tells a process its place among others. Processes that this one starts have
// no such place, and a library of theirs that reads it would wait for the others.
bool tells_a_place(std::string_view variable);

// "`mpirun -x MASTER_ADDR=…`": how the launcher hands a variable to its processes.
std::string how_to_name_master(const RankPlace& place);

}  // namespace tandem::launch
