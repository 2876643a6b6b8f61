// How much of a node's memory one rank takes, row by row, and how much is reserved for it. This
// file knows no models: whoever plans a rank names the rows (actors/main/memory_plan.h). Pure; all
// amounts are bytes.
//
//   ME-1  The reserved memory is the sum of all lasting rows and the largest peak: the phases with
//         peaks (load, restore, checkpoint) never overlap.
//   ME-2  The pages of a rank take no more than its share of the largest node, and no more than
//         could ever be in use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/fleet/resources.h"

namespace tandem::scheduler {

enum class MemoryUse : std::uint8_t {
  kLasting,  // from the start of the rank to its end
  kPeak,     // in one phase only
};

// One use of memory by a rank, as the table of memory shows it.
struct MemoryRow {
  std::string name;  // "gradients"
  std::int64_t bytes = 0;
  MemoryUse use = MemoryUse::kLasting;
  bool operator==(const MemoryRow&) const = default;
};

// Memory of which a rank takes as many equal pages as its share of a node holds.
struct PagedMemory {
  std::string name;  // "KV pages"
  std::int64_t page_bytes = 1;
  std::int64_t pages_min = 1;  // with fewer pages the rank cannot work
  std::int64_t pages_max = 1;  // more pages are never in use
  double share = 1;            // a fraction of a node's memory, for all sharers together
  std::int32_t sharers = 1;    // actors that divide the share evenly
  std::string share_key;       // the key of the job file: "rollout.gpu_memory_utilization"
  std::int64_t pages = 0;      // set by settle_pages()
  bool operator==(const PagedMemory&) const = default;
};

// All memory of one rank: fixed rows, and pages where it has any.
struct MemoryDemand {
  std::vector<MemoryRow> rows;
  std::optional<PagedMemory> paged;
  bool operator==(const MemoryDemand&) const = default;
};

// Decides how many pages a rank takes where the largest node offers `node_bytes` (ME-2). 0 means
// that the node's memory is not known; pages_max are taken then.
void settle_pages(MemoryDemand& demand, std::int64_t node_bytes);

// The bytes of the pages that were settled, and all bytes that are reserved for the rank (ME-1).
std::int64_t paged_bytes(const MemoryDemand& demand);
std::int64_t reserved_bytes(const MemoryDemand& demand);

// All rows, with one for the pages, in the order in which they are shown: lasting ones first.
std::vector<MemoryRow> shown_rows(const MemoryDemand& demand);

// One or more changes to the job file that lower memory, and the demands of ranks with them.
struct MemoryOption {
  std::string setting;                         // "learner.enable_gradient_checkpointing=true"
  std::map<std::string, MemoryDemand> demand;  // by role: "learner"
  int changes = 1;
};

struct RoleMemory {
  std::string role;        // "rollout"
  std::int64_t ranks = 1;  // ranks of all actors of the role
  MemoryDemand demand;     // what each rank needs
};

// A table with a line per row, such as "learner  weights  2274 MiB", with the amounts reserved per
// role and in all. Empty where no role has a row.
std::string memory_table(std::span<const RoleMemory> roles);

// Rounded up: "512 MiB".
std::string mebibytes_text(std::int64_t bytes);

}  // namespace tandem::scheduler
