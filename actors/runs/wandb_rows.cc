#include "actors/runs/wandb_rows.h"

#include <algorithm>

namespace tandem::runs {

std::optional<WandbRow> WandbRows::take(const MetricsLine& line, double unix_seconds,
                                        JsonByKey tables) {
  runtime_ = run_clock(line).value_or(runtime_);
  const std::int64_t step = std::max(line.step, last_step_ + 1);
  // There may be very many such lines, and no row is made of them: the one that waits was sent too.
  if (!line.evaluation && !can_be_sent(step)) {
    last_step_ = step;
    waiting_ = Waiting{.sent = true};
    return std::nullopt;
  }
  WandbRow row{.values = values_of(line),
               .tables = std::move(tables),
               .step = line.step,
               .runtime = runtime_,
               .unix_seconds = unix_seconds};
  if (line.evaluation) {
    const auto sent = sent_.evaluated.find(line.step);
    if (sent != sent_.evaluated.end())
      sent_.evaluated.erase(sent);
    else
      take_evaluation(std::move(row));
    return std::nullopt;
  }
  auto complete = take_waiting();
  row.step = last_step_ = step;
  waiting_ = Waiting{.row = std::move(row)};
  if (!evaluations_.empty()) {
    merge(*waiting_, evaluations_.front());
    evaluations_.pop_front();
  }
  return complete;
}

void WandbRows::take_evaluation(WandbRow evaluation) {
  if (!waiting_ && last_step_ < 0 && can_be_sent(0)) {  // before the first step
    evaluation.step = last_step_ = 0;
    waiting_ = Waiting{.row = std::move(evaluation), .evaluated = true};
  } else if (waiting_ && !waiting_->evaluated && !waiting_->sent) {
    merge(*waiting_, evaluation);
  } else {
    evaluations_.push_back(std::move(evaluation));
  }
}

void WandbRows::merge(Waiting& into, const WandbRow& evaluation) {
  into.evaluated = true;
  into.row.values.insert(evaluation.values.begin(), evaluation.values.end());
  into.row.tables.insert(evaluation.tables.begin(), evaluation.tables.end());
}

void WandbRows::add_table(const std::string& key, const std::string& value) {
  if (waiting_) waiting_->row.tables[key] = value;
}

std::optional<WandbRow> WandbRows::take_waiting() {
  if (!waiting_) return std::nullopt;
  const Waiting waiting = std::move(*waiting_);
  waiting_.reset();
  return waiting.sent ? std::nullopt : std::optional(waiting.row);
}

std::optional<WandbRow> WandbRows::take_rest() {
  if (auto row = take_waiting()) return row;
  if (evaluations_.empty()) return std::nullopt;
  WandbRow row = std::move(evaluations_.front());
  evaluations_.pop_front();
  row.step = last_step_ = std::max(last_step_, sent_.last_step) + 1;
  return row;
}

}  // namespace tandem::runs
