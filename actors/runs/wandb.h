// A run as Weights & Biases knows it: the lines of metrics.jsonl as the history of an offline run
// in RUN_DIR/wandb, with the job as its configuration, which `wandb sync RUN_DIR/wandb` sends and
// `wandb leet RUN_DIR/wandb` shows. Nothing is sent from here. The files are an extra that can be
// made again: metrics.jsonl is what the run keeps. Not here: their format (wandb_log.h,
// wandb_records.h), and what becomes of a run whose files cannot be written (run_files.h).
//
// Which line is in which row: wandb_rows.h. Completions come as tables, `val/samples` with each
// evaluation and `train/samples` beside it.
//
//   WN-1  After add(line) the rows of the run's files are together the lines of metrics.jsonl that
//         are complete with that one, after end() all of them, whatever earlier incarnations left
//         out, lost, or trained anew; and those of earlier steps that have gone from metrics.jsonl,
//         as when it was thinned. Only a step that was sent and then trained anew stays as it was
//         sent: wandb takes no step twice.
//   WN-2  All files have one run id. A file that `wandb sync` has sent, which it marks, is not
//         changed: a further one of the same id goes on, as wandb's own resume does. A file that
//         was not sent is cut behind the last row before the steps that the run trains now or
//         trained anew (KeptRows), and goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/runs/tracker.h"
#include "actors/runs/wandb_kept.h"
#include "actors/runs/wandb_records.h"
#include "actors/runs/wandb_rows.h"
#include "actors/runs/wandb_samples.h"
#include "runtime/base/clock.h"

namespace tandem::runs {

inline constexpr std::int64_t kSummaryEveryMs = 10'000;
inline constexpr std::uint64_t kTablesBytesMax = std::uint64_t{64} << 20;  // of an incarnation

// Writes the files of one incarnation of one run. A single thread uses it.
class WandbWriter final : public Tracker {
 public:
  // Touches nothing before the first add(). `clock` is the wall time in milliseconds since 1970.
  WandbWriter(std::filesystem::path run_dir, WandbRun run,
              std::function<std::int64_t()> clock = unix_ms)
      : run_dir_(std::move(run_dir)), run_(std::move(run)), clock_(std::move(clock)) {}

  std::string_view name() const override { return "wandb"; }
  // The first call begins or goes on with a file, and writes the lines that earlier files lack.
  Result<void> add(std::string_view metrics_line) override;
  Result<void> sample(std::string_view sample_line) override;
  Result<void> end(std::string_view result) override;

 private:
  // Opens a file and brings it up to line_; true where line_ is taken with that.
  Result<bool> begin();
  Result<void> begin_file(const std::vector<WandbFile>& former);
  // What metrics.jsonl has before line_, one line after another.
  Result<void> each_former(const std::function<void(const MetricsLine&)>& take) const;
  // What stays of a file; `sent` are the rows of the files before it.
  Result<KeptPart> kept_part(const std::filesystem::path& file, const SentRows& sent) const;
  Result<void> go_on(const WandbFile& last, KeptPart kept);
  Result<void> write_row(const WandbRow& row);
  // The values of the tables that belong to the evaluation of this version; writes their files.
  Result<JsonByKey> tables_of_evaluation(std::int64_t version);
  // Adds the table to `tables`, unless it has no rows, or there are too many; leaves it empty.
  Result<void> write_table(const std::string& key, SampleTable& table, JsonByKey& tables);
  Result<void> write_summary();
  void append(std::string_view field);  // to records_
  Result<void> flush();
  double now() const { return static_cast<double>(clock_()) / 1000; }

  const std::filesystem::path run_dir_;
  const WandbRun run_;
  const std::function<std::int64_t()> clock_;
  std::filesystem::path folder_;  // of file_: wandb/offline-run-…-ID
  std::ofstream file_;            // open from the first add()
  std::uint64_t offset_ = 0;      // bytes of the file, without records_
  std::string records_;           // not yet written
  std::int64_t number_ = 0;       // of the newest record
  WandbRows rows_;
  WandbRow summary_;             // the newest value of each key
  std::int64_t summary_ms_ = 0;  // when it was written
  WandbSamples samples_;
  std::uint64_t table_bytes_ = 0;  // of this incarnation
  bool tables_full_ = false;       // and the log says so
  MetricsLine line_;               // the newest
};

}  // namespace tandem::runs
