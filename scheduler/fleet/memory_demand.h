// How much of a node's memory one rank takes, row by row, and how much is reserved for it. Knows no
// models: whoever plans a rank names the rows (actors/main/memory_plan.h). Pure.
//
//   ME-1  What is reserved is the sum of all lasting rows and the largest peak: the phases in which
//         peaks occur (load, restore, checkpoint) never overlap.
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

struct MemoryRow {
  std::string name;  // "gradients"
  std::int64_t bytes = 0;
  MemoryUse use = MemoryUse::kLasting;
  bool operator==(const MemoryRow&) const = default;
};

// Memory of which a rank takes as many equal pages as a share of its node holds.
struct PagedMemory {
  std::string name;  // "KV pages"
  std::int64_t page_bytes = 1;
  std::int64_t pages_min = 1;  // with fewer the rank cannot work
  std::int64_t pages_max = 1;  // more are never in use
  double share = 1;            // of a node's memory, for all sharers together
  std::int32_t sharers = 1;    // actors that divide the share evenly
  std::string share_key;       // of the job file: "rollout.gpu_memory_utilization"
  std::int64_t pages = 0;      // as settle_pages() decided
  bool operator==(const PagedMemory&) const = default;
};

struct MemoryDemand {
  std::vector<MemoryRow> rows;
  std::optional<PagedMemory> paged;
  bool operator==(const MemoryDemand&) const = default;
};

// Decides how many pages a rank takes where the largest node offers `node_bytes`; 0: not known, so
// that pages_max are taken.
void settle_pages(MemoryDemand& demand, std::int64_t node_bytes);

std::int64_t paged_bytes(const MemoryDemand& demand);
std::int64_t reserved_bytes(const MemoryDemand& demand);

// All rows, the pages among them, in the order in which they are shown: lasting ones first.
std::vector<MemoryRow> shown_rows(const MemoryDemand& demand);

// One change to the job file or several, and what ranks take with them.
struct MemoryOption {
  std::string setting;                         // "learner.enable_gradient_checkpointing=true"
  std::map<std::string, MemoryDemand> demand;  // by role: "learner"
  int changes = 1;
};

struct RoleMemory {
  std::string role;        // "rollout"
  std::int64_t ranks = 1;  // of all its actors
  MemoryDemand demand;     // of each rank
};

// "learner  weights  2274 MiB", a line per row, with what is reserved per role and in all. Empty
// where no role has a row.
std::string memory_table(std::span<const RoleMemory> roles);

// Rounded up: "512 MiB".
std::string mebibytes_text(std::int64_t bytes);

}  // namespace tandem::scheduler
