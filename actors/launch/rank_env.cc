// Each launcher has a row with the names of its variables. Several rows may be there at once: Open
// MPI sets PMIx's as well, and a torchrun that srun or mpirun has started on each host has the
// place of its host beside the places of its processes. There torchrun's are those of this process,
// which TORCHELASTIC_RUN_ID shows; all others have to agree.
#include "actors/launch/rank_env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

namespace tandem::launch {
namespace {

struct Row {
  std::string_view launcher;
  const char *rank, *size, *local_rank, *local_size;  // null: the launcher sets no such variable
};
constexpr std::array<Row, 4> kRows{{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PMIx", "PMIX_RANK", nullptr, nullptr, nullptr},
}};
constexpr const char* kTorchrunHosts = "GROUP_WORLD_SIZE";
constexpr const char* kTorchrunMark = "TORCHELASTIC_RUN_ID";
constexpr const char* kMaster = "MASTER_ADDR";
constexpr std::int64_t kRanksMax = 1 << 24;
constexpr const char* kHelp =
    "unset what is not meant, or say where the controller is with --controller or --cluster";

Error refused(std::string message) { return {ErrorCode::kInvalid, std::move(message), "", kHelp}; }

// The whole number of a variable, within `least` and `most`; nothing where it is not set. An empty
// value counts as not set, as a shell passes it on.
Result<std::optional<std::int64_t>> number(const Variables& variables, const char* name,
                                           std::int64_t least, std::int64_t most) {
  const auto it = name == nullptr ? variables.end() : variables.find(name);
  if (it == variables.end() || it->second.empty()) return std::optional<std::int64_t>();
  std::int64_t value = 0;
  const std::string& text = it->second;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && value >= least &&
      value <= most)
    return std::optional(value);
  return refused(std::string(name) + " is `" + text + "`, and not a number from " +
                 std::to_string(least) + " to " + std::to_string(most));
}

// What the row's variables tell; nothing where its rank is not set.
Result<std::optional<RankPlace>> place_of(const Row& row, const Variables& variables) {
  const auto size = number(variables, row.size, 1, kRanksMax);
  if (!size) return size.error();
  const std::int64_t last = size->value_or(kRanksMax) - 1;
  const auto rank = number(variables, row.rank, 0, last);
  if (!rank) return rank.error();
  if (!*rank && *size)
    return refused(std::string(row.size) + " is set, and " + row.rank + " is not");
  if (!*rank) return std::optional<RankPlace>();
  if (row.size != nullptr && !*size)
    return refused(std::string(row.rank) + " is set, and " + row.size + " is not");
  const auto local = number(variables, row.local_rank, 0, last);
  if (!local) return local.error();
  const auto beside = number(variables, row.local_size, 1, last + 1);
  if (!beside) return beside.error();
  if (*local && *beside && **local >= **beside)
    return refused(std::string(row.local_rank) + " is " + std::to_string(**local) + ", and " +
                   row.local_size + " is " + std::to_string(**beside));
  RankPlace place{.launcher = std::string(row.launcher),
                  .variable = row.rank,
                  .rank = **rank,
                  .size = *size,
                  .local_rank = local->value_or(0)};
  // A launcher that tells nothing of a host's processes has started one on each.
  const std::int64_t each = beside->value_or(*local ? 0 : 1);
  if (*size && each > 0 && **size % each == 0) place.hosts = **size / each;
  return std::optional(std::move(place));
}

bool agree(const RankPlace& a, const RankPlace& b) {
  return a.rank == b.rank && (!a.size || !b.size || a.size == b.size);
}

std::string told(const RankPlace& place) {
  return place.variable + " tells rank " + std::to_string(place.rank) +
         (place.size ? " of " + std::to_string(*place.size) : "");
}

// The places that the environment tells, in the order of the rows.
Result<std::vector<RankPlace>> places(const Variables& variables) {
  std::vector<RankPlace> found;
  for (const Row& row : kRows) {
    auto place = place_of(row, variables);
    if (!place) return place.error();
    if (*place) found.push_back(**std::move(place));
  }
  return found;
}

}  // namespace

Result<std::optional<RankPlace>> rank_place(const Variables& variables) {
  auto found = places(variables);
  if (!found) return found.error();
  if (found->empty()) return std::optional<RankPlace>();
  RankPlace place = std::move(found->front());
  const bool by_torchrun = place.variable == kRows.front().rank;
  if (!(by_torchrun && variables.contains(kTorchrunMark)))
    for (auto other = found->begin() + 1; other != found->end(); ++other)
      if (!agree(place, *other)) return refused(told(place) + ", and " + told(*other));
  if (by_torchrun) {
    const auto hosts = number(variables, kTorchrunHosts, 1, *place.size);
    if (!hosts) return hosts.error();
    if (*hosts) place.hosts = *hosts;
  }
  if (const auto master = variables.find(kMaster); master != variables.end())
    place.master = master->second;
  return std::optional(std::move(place));
}

bool tells_a_place(std::string_view variable) {
  for (const Row& row : kRows)
    for (const char* const name : {row.rank, row.size, row.local_rank, row.local_size})
      if (name != nullptr && variable == name) return true;
  for (const std::string_view name :
       {"MASTER_ADDR", "MASTER_PORT", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK",
        "ROLE_WORLD_SIZE", "PMI_FD"})
    if (variable == name) return true;
  for (const std::string_view prefix : {"TORCHELASTIC_", "OMPI_", "PMIX_", "HYDI_"})
    if (variable.starts_with(prefix)) return true;
  return false;
}

std::string how_to_name_master(const RankPlace& place) {
  if (place.launcher == "Open MPI") return "`mpirun -x MASTER_ADDR=10.0.0.1`";
  if (place.launcher == "MPICH") return "`mpiexec -genv MASTER_ADDR 10.0.0.1`";
  return "MASTER_ADDR=10.0.0.1";
}

}  // namespace tandem::launch
