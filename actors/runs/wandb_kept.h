// The files that earlier incarnations of a run left in RUN_DIR/wandb: which rows a server has, and
// which rows of a file that was not sent the run still has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/runs/metrics_line.h"
#include "actors/runs/wandb_log.h"
#include "actors/runs/wandb_records.h"
#include "actors/runs/wandb_rows.h"
#include "runtime/base/result.h"

namespace tandem::runs {

struct WandbFile {
  std::filesystem::path folder;  // RUN_DIR/wandb/offline-run-YYYYMMDD_HHMMSS-ID
  std::string id;
  bool closed = false;  // it was sent, or its beginning cannot be read: nothing is added to it

  std::filesystem::path path() const { return folder / ("run-" + id + ".wandb"); }
};

// In the order in which they began. None where there is no folder.
Result<std::vector<WandbFile>> wandb_files(const std::filesystem::path& run_dir);
// The rows of the files that are closed.
SentRows sent_rows(const std::vector<WandbFile>& files);

// The evaluations in metrics.jsonl: their figures by the versions of the weights.
class KnownEvaluations {
 public:
  void add(const MetricsLine& line);
  // Whether metrics.jsonl has evaluations of this version, and none of them has these figures.
  bool differ(std::int64_t version, const JsonByKey& values) const;

 private:
  std::map<std::int64_t, std::vector<std::string>> texts_;
};

// The part of a file that goes on, from its beginning.
struct KeptPart {
  std::uint64_t bytes = kWandbHeader.size();
  std::int64_t number = 0;  // of the last record
  SentRows rows;            // the rows in it
  WandbRow newest;          // the newest value of each of their keys
};

// Compares the rows of a file with the steps in metrics.jsonl, which may have been thinned: then
// the file has rows without a line. A file is right up to a row that is as its line, since every
// incarnation compares before it writes, so that a row without a line stays where a later one is as
// its line. Those at the end stay as well, up to the step with which the run goes on, unless a row
// differs from its line: then they may be of steps that were trained anew.
class KeptRows {
 public:
  // `path` can be opened, or there are no rows. Keeps the reference.
  KeptRows(const std::filesystem::path& path, const KnownEvaluations& evaluations);

  // Takes the lines of steps in their order. The walk ends at a row that differs.
  void take(const MetricsLine& line);
  // The last call: what stays, rows of the step `end` and later ones left out.
  KeptPart end(std::int64_t end);

 private:
  // The next row, over records that are no rows; null at the end of the file or of the walk.
  const WandbRow* row();
  // Goes past the row; false where its evaluation differs from those that are known.
  bool pass();
  void differs();
  void keep_passed();

  const KnownEvaluations& evaluations_;
  std::optional<WandbLogReader> reader_;  // while the walk goes on
  std::optional<WandbRow> row_;           // was read, and not passed
  KeptPart after_row_;                    // bytes and number behind row_
  KeptPart kept_;
  KeptPart passed_;  // behind kept_: its rows and newest values are those that kept_ lacks
};

}  // namespace tandem::runs
