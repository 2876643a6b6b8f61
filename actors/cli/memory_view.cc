// Tables of the API's memory figures, which are planned before a job starts
// (actors/main/memory_plan.h).
#include "actors/cli/memory_view.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "actors/cli/cells.h"
#include "actors/cli/table.h"

namespace tandem::cli {
namespace {

using cells::at;
using nlohmann::json;

// A row per part of the plan, then the row with the sum that is reserved and the number of ranks.
void append_role(const std::string& role, const json& planned, std::vector<Row>& rows) {
  const json& parts = at(planned, {"rows"});
  if (!parts.is_array()) return;
  for (const json& part : parts) {
    const json& peak = at(part, {"peak"});
    const bool at_peak = peak.is_boolean() && peak.get<bool>();
    rows.push_back({role, cells::text(at(part, {"name"})) + (at_peak ? ", at its peak" : ""),
                    cells::bytes(at(part, {"bytes"})), ""});
  }
  rows.push_back({role, "reserved", cells::bytes(at(planned, {"reserved_bytes"})),
                  cells::text(at(planned, {"ranks"}))});
}

}  // namespace

std::string memory_lines(const json& item, int width) {
  const json& roles = at(item, {"memory"});
  std::vector<Row> rows;
  if (roles.is_object())
    for (const auto& [role, planned] : roles.items()) append_role(role, planned, rows);
  if (rows.empty()) return "";
  return render_table({{"ROLE", Align::kLeft, 7},
                       {"OF EACH RANK", Align::kLeft, 12},
                       {"MEMORY", Align::kRight, 8},
                       {"RANKS", Align::kRight}},
                      rows, width);
}

std::string reserved_lines(const json& item, int width) {
  const json& ranks = at(item, {"reserved"});
  std::vector<Row> rows;
  if (ranks.is_array())
    for (const json& rank : ranks)
      rows.push_back({cells::text(at(rank, {"actor"})), cells::text(at(rank, {"rank"})),
                      cells::text(at(rank, {"cpus"})), cells::text(at(rank, {"gpus"})),
                      cells::bytes(at(rank, {"memory_bytes"}))});
  if (rows.empty()) return "";
  return render_table({{"ACTOR", Align::kLeft, 16, Cut::kMiddle},
                       {"RANK", Align::kRight},
                       {"CPUS", Align::kRight},
                       {"GPUS", Align::kRight},
                       {"MEMORY", Align::kRight, 8}},
                      rows, width);
}

// The cell of a node's memory; where the reservation is unknown, the offer alone.
std::string node_memory(const json& node) {
  const json& offered = at(node, {"memory_bytes"});
  const json& reserved = at(node, {"leased", "memory_bytes"});
  if (!offered.is_number() || !reserved.is_number()) return cells::bytes(offered);
  return cells::bytes(reserved) + "/" + cells::bytes(offered);
}

}  // namespace tandem::cli
