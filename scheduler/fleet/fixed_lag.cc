// A row per step that is not committed, a cell per slot. The version and the prompt of a slot are
// functions of its numbers alone; this is why a run repeats, so no answer here may
// depend on the order in which groups are generated or scored.
#include "scheduler/fleet/fixed_lag.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tandem::scheduler {

PolicyVersion slot_version(const Budget& budget, StepId step) {
  return {std::max<std::int64_t>(0, step.value - budget.max_staleness)};
}

std::int64_t prompt_position(const Budget& budget, const Slot& slot) {
  const std::int64_t first_try = slot.step.value * budget.groups_per_step + slot.index;
  // The attempts a of all slots fill one block of steps_total * B positions, behind the blocks of
  // the attempts before: so no two slots share a position.
  return slot.attempt * budget.steps_total * budget.groups_per_step + first_try;
}

FixedLag::FixedLag(const Budget& budget, StepId first) : budget_(budget), first_(first) {
  CHECK(budget.sync_steps == 1);
}

FixedLag::FixedLag(const Budget& budget, const FixedLagSnapshot& snapshot)
    : FixedLag(budget, snapshot.first) {
  for (const auto& [step, cells] : snapshot.rows) {
    Row& row = rows_[step];
    row.cells = cells;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      if (cell.scored) ++row.scored;
      const auto index = static_cast<std::int32_t>(i);
      if (cell.group)
        slots_[*cell.group] = Slot{step, index, cell.attempt};
      else
        row.open.insert(row.open.end(), index);
    }
  }
}

std::optional<Slot> FixedLag::next(PolicyVersion published) const {
  const std::int64_t end =
      std::min(published.value + budget_.lookahead + 1, budget_.steps_total);  // first closed step
  for (StepId step = first_; step.value < end; ++step.value) {
    const auto row = rows_.find(step);
    // A row is made by its first issued(): without one all slots are open.
    if (row == rows_.end()) return Slot{step, 0, 0};
    const auto& [cells, open, scored] = row->second;
    if (open.empty()) continue;
    const std::int32_t index = *open.begin();
    return Slot{step, index, cells[static_cast<std::size_t>(index)].attempt};
  }
  return std::nullopt;
}

void FixedLag::issued(const Slot& slot, GroupId group) {
  CHECK(slot.step >= first_ && slot.index >= 0 && slot.index < budget_.groups_per_step);
  Row& row = rows_[slot.step];
  if (row.cells.empty()) {
    row.cells.resize(static_cast<std::size_t>(budget_.groups_per_step));
    for (std::int32_t i = 0; i < budget_.groups_per_step; ++i) row.open.insert(row.open.end(), i);
  }
  Cell& cell = row.cells[static_cast<std::size_t>(slot.index)];
  CHECK(!cell.group && cell.attempt == slot.attempt && "FL-1");
  cell.group = group;
  row.open.erase(slot.index);
  CHECK(slots_.emplace(group, slot).second);
}

FixedLag::Cell& FixedLag::cell_of(const Slot& slot) {
  return rows_.at(slot.step).cells[static_cast<std::size_t>(slot.index)];
}

void FixedLag::discarded(GroupId group) {
  // Keeps the row's count of scored cells right for a group that was scored before it was
  // discarded.
  set_scored(group, false);
  const auto at = slots_.find(group);
  Cell& cell = cell_of(at->second);
  cell.group.reset();
  ++cell.attempt;
  rows_.at(at->second.step).open.insert(at->second.index);
  slots_.erase(at);
}

void FixedLag::scored(GroupId group) { set_scored(group, true); }

void FixedLag::set_scored(GroupId group, bool scored) {
  const auto at = slots_.find(group);
  CHECK(at != slots_.end());
  Cell& cell = cell_of(at->second);
  if (cell.scored == scored) return;
  cell.scored = scored;
  rows_.at(at->second.step).scored += scored ? 1 : -1;
}

std::optional<std::vector<GroupId>> FixedLag::batch(StepId step) const {
  const auto row = rows_.find(step);
  if (row == rows_.end() || row->second.scored < budget_.groups_per_step) return std::nullopt;
  std::vector<GroupId> groups;
  for (const Cell& cell : row->second.cells) groups.push_back(*cell.group);
  return groups;
}

std::optional<GroupId> FixedLag::awaited(StepId step) const {
  const auto row = rows_.find(step);
  if (row == rows_.end()) return std::nullopt;
  const auto cell =
      std::ranges::find_if(row->second.cells, [](const Cell& one) { return !one.scored; });
  return cell == row->second.cells.end() ? std::nullopt : cell->group;
}

void FixedLag::committed(StepId step) {
  CHECK(step == first_);
  const auto row = rows_.find(step);
  CHECK(row != rows_.end() && row->second.scored == budget_.groups_per_step);
  for (const Cell& cell : row->second.cells) slots_.erase(*cell.group);
  rows_.erase(row);
  ++first_.value;
}

std::optional<Slot> FixedLag::slot_of(GroupId group) const {
  const auto at = slots_.find(group);
  if (at == slots_.end()) return std::nullopt;
  return at->second;
}

FixedLagSnapshot FixedLag::snapshot() const {
  FixedLagSnapshot snapshot{.first = first_, .rows = {}};
  for (const auto& [step, row] : rows_) snapshot.rows.push_back({step, row.cells});
  return snapshot;
}

}  // namespace tandem::scheduler
