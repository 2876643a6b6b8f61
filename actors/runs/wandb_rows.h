// Rows of a history of Weights & Biases from lines of metrics.jsonl. `wandb sync` counts a row on
// whose `_step` is not above that of the row before, and all rows behind it with it: each step may
// have one row. A step's row therefore waits for the next step, as rows wait in wandb itself, and
// takes up the record of an evaluation that ends meanwhile. An evaluation keeps its version as
// `val/step`, over which wandb draws `val/…`; one that finds no row without another waits for the
// next row. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "actors/runs/metrics_line.h"
#include "actors/runs/wandb_records.h"

namespace tandem::runs {

// The rows that a server has already: nothing at or below their last step can be sent any more.
struct SentRows {
  std::int64_t last_step = -1;
  std::multiset<std::int64_t> evaluated;  // versions, one of each evaluation
};

class WandbRows {
 public:
  explicit WandbRows(SentRows sent = {}) : sent_(std::move(sent)) {}

  // Takes a line, with the time at which it was written and the tables that belong to an
  // evaluation. Returns the row that is complete with it.
  std::optional<WandbRow> take(const MetricsLine& line, double unix_seconds, JsonByKey tables = {});
  // Adds a table to the row that waits; nothing where none does.
  void add_table(const std::string& key, const std::string& value);
  // At the end of the run: the rows that wait, one after the other; then nullopt.
  std::optional<WandbRow> take_rest();

 private:
  struct Waiting {
    WandbRow row;
    bool evaluated = false, sent = false;
  };

  void take_evaluation(WandbRow evaluation);
  static void merge(Waiting& into, const WandbRow& evaluation);
  bool can_be_sent(std::int64_t step) const { return step > sent_.last_step; }
  std::optional<WandbRow> take_waiting();

  SentRows sent_;
  std::optional<Waiting> waiting_;
  std::deque<WandbRow> evaluations_;  // that wait for a row
  std::int64_t last_step_ = -1;       // of the rows that were returned, or wait
  double runtime_ = 0;                // of the newest line that has it, seconds
};

}  // namespace tandem::runs
