// The fixed-lag schedule: training that repeats bit for bit, although rollouts run ahead.
//
// Slot (d, i) of step d is generated entirely by version max(0, d - K), from a prompt that depends
// on (d, i, attempt) alone. Attempt a + 1 replaces a discarded attempt a, and batches are in slot
// order. So neither the number of actors nor any death changes the groups that are trained. Plain
// state; the exchange journals the changes that it applies. Not responsible for the ledger's
// states: the caller says which groups are scored.
//
// FL-1  A slot has at most one live group at a time.
// FL-2  The batch of step d is slots 0 … B-1 in order, each with its lowest attempt not discarded.
// FL-3  Held rows are the steps not yet committed, at most L + 2 of them.
//
// Letters as in staleness.h: K max_staleness, L lookahead, B groups_per_step, p published version,
// s next step.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/ids.h"
#include "scheduler/fleet/staleness.h"

namespace tandem::scheduler {

struct Slot {
  StepId step;               // d, the step that trains the slot
  std::int32_t index = 0;    // i, in [0, B)
  std::int32_t attempt = 0;  // a, counts discarded groups of the slot
  auto operator<=>(const Slot&) const = default;
};

// max(0, d - K): the one version that generates step d. The publisher must retain s - K … s.
PolicyVersion slot_version(const Budget& budget, StepId step);

// Position of the slot's prompt in the endless shuffled sequence of prompts (epoch after epoch):
// attempt 0 takes the first steps_total * B positions in slot order, attempt 1 the next ones, ….
std::int64_t prompt_position(const Budget& budget, const Slot& slot);

struct FixedLagSnapshot {  // the held rows
  struct Cell {            // one slot: the attempt that is next or under way, its group once issued
    std::int32_t attempt = 0;
    std::optional<GroupId> group;
    bool scored = false;
  };
  struct Row {
    StepId step;
    std::vector<Cell> cells;  // B of them
  };
  StepId first;  // the next step to commit
  std::vector<Row> rows;
};

class FixedLag {
 public:
  // `budget.sync_steps` must be 1 (CHECKed): every version is published. `first`: the next step to
  // commit, above 0 where a run resumes.
  explicit FixedLag(const Budget& budget, StepId first = {});
  FixedLag(const Budget& budget, const FixedLagSnapshot& snapshot);

  // The next slot to admit: the earliest (step, index) without a live group, among the steps d <=
  // min(p + L, total - 1) that are not committed; none where all have one. A slot that was issued
  // stays issued until its group is discarded. next() changes nothing; issued() follows when the
  // group has been admitted.
  std::optional<Slot> next(PolicyVersion published) const;
  void issued(const Slot& slot, GroupId group);

  void discarded(GroupId group);  // frees the slot for the next attempt
  void scored(GroupId group);     // repeating it is harmless

  // The groups of `step` in slot order, where every slot is scored; else none. Changes nothing.
  std::optional<std::vector<GroupId>> batch(StepId step) const;

  // The group of the first slot of `step` that is not scored; none where all are, or where the slot
  // has no group yet.
  std::optional<GroupId> awaited(StepId step) const;

  void committed(StepId step);  // steps commit in order (CHECKed); the step's row is forgotten

  std::optional<Slot> slot_of(GroupId group) const;  // the slot of a group in a held row
  StepId first_held() const { return first_; }       // the next step to commit
  FixedLagSnapshot snapshot() const;

 private:
  using Cell = FixedLagSnapshot::Cell;
  // One step that is not committed. Which cells are open and how many are scored is kept with the
  // cells, so that no admission looks through a row: that of B groups would take B² looks.
  struct Row {
    std::vector<Cell> cells;      // B of them
    std::set<std::int32_t> open;  // the cells without a group
    std::int64_t scored = 0;
  };

  Cell& cell_of(const Slot& slot);
  void set_scored(GroupId group, bool scored);

  Budget budget_;
  StepId first_;
  std::map<StepId, Row> rows_;
  std::map<GroupId, Slot> slots_;
};

}  // namespace tandem::scheduler
