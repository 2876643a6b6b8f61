#include "scheduler/fleet/memory_demand.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

constexpr std::int64_t kBytesPerMebibyte = std::int64_t{1} << 20;

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

// One line of the table; `note` stands behind the amount.
struct TableLine {
  std::string role, name, amount, note;
};

std::vector<TableLine> lines_of(const RoleMemory& role) {
  std::vector<TableLine> lines;
  for (const MemoryRow& row : shown_rows(role.demand)) {
    const bool peak = row.use == MemoryUse::kPeak;
    lines.push_back({lines.empty() ? role.role : "", (peak ? "at its peak: " : "") + row.name,
                     mebibytes_text(row.bytes), ""});
  }
  const std::int64_t each = reserved_bytes(role.demand);
  const std::string times = role.ranks == 1 ? "" : "x " + std::to_string(role.ranks) + " ranks";
  lines.push_back({lines.empty() ? role.role : "", "reserved", mebibytes_text(each), times});
  return lines;
}

}  // namespace

std::string mebibytes_text(std::int64_t bytes) {
  return std::to_string((bytes + kBytesPerMebibyte - 1) / kBytesPerMebibyte) + " MiB";
}

void settle_pages(MemoryDemand& demand, std::int64_t node_bytes) {
  if (!demand.paged) return;
  PagedMemory& paged = *demand.paged;
  CHECK(paged.page_bytes > 0 && paged.sharers > 0 && paged.pages_max >= 0);
  paged.pages = paged.pages_max;
  if (node_bytes <= 0) return;
  // Whole pages only: the share is rounded down, so all sharers together stay within it (ME-2).
  const double share = paged.share * static_cast<double>(node_bytes) / paged.sharers;
  paged.pages = std::min(paged.pages_max, static_cast<std::int64_t>(share) / paged.page_bytes);
}

std::int64_t paged_bytes(const MemoryDemand& demand) {
  return demand.paged ? demand.paged->pages * demand.paged->page_bytes : 0;
}

std::int64_t reserved_bytes(const MemoryDemand& demand) {  // ME-1
  std::int64_t lasting = paged_bytes(demand), peak = 0;
  for (const MemoryRow& row : demand.rows) {
    if (row.use == MemoryUse::kLasting) lasting += row.bytes;
    if (row.use == MemoryUse::kPeak) peak = std::max(peak, row.bytes);
  }
  return lasting + peak;
}

std::vector<MemoryRow> shown_rows(const MemoryDemand& demand) {
  std::vector<MemoryRow> rows = demand.rows;
  if (demand.paged) rows.push_back({demand.paged->name, paged_bytes(demand), MemoryUse::kLasting});
  // Stable: within lasting rows and within peaks the planner's order stays.
  std::ranges::stable_sort(rows, {}, [](const MemoryRow& row) { return row.use; });
  return rows;
}

std::string memory_table(std::span<const RoleMemory> roles) {
  std::vector<TableLine> lines;
  std::int64_t total = 0;
  for (const RoleMemory& role : roles) {
    if (shown_rows(role.demand).empty()) continue;
    std::ranges::move(lines_of(role), std::back_inserter(lines));
    total += reserved_bytes(role.demand) * role.ranks;
  }
  if (lines.empty()) return "";
  lines.push_back({"all", "reserved", mebibytes_text(total), ""});
  std::size_t role_width = 0, name_width = 0, amount_width = 0;
  for (const TableLine& line : lines) {
    role_width = std::max(role_width, line.role.size());
    name_width = std::max(name_width, line.name.size());
    amount_width = std::max(amount_width, line.amount.size());
  }
  std::string table;
  for (const TableLine& line : lines) {
    table += padded(line.role, role_width) + "  " + padded(line.name, name_width) + "  " +
             std::string(amount_width - line.amount.size(), ' ') + line.amount +
             (line.note.empty() ? "" : "  " + line.note) + "\n";
  }
  return table;
}

}  // namespace tandem::scheduler
