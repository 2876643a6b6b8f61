// The files that earlier incarnations of a run left in RUN_DIR/wandb: which rows a server has, and
// which rows of a file that was not sent the run still has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/runs/wandb_log.h"
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

// Walks through the rows of a file.
class KeptRows {
 public:
  // How much of a file is kept: its bytes, and the number of the last record within them.
  struct Cut {
    std::uint64_t bytes = 0;
    std::int64_t number = 0;
  };

  // Without a file there are no rows.
  explicit KeptRows(const std::filesystem::path& file);

  // Whether the next row begins with these bytes (history_begin() in wandb_records.h). After the
  // first that does not, the answer is no for ever.
  bool next_is(std::string_view begin);
  // Behind the last row that was as asked, and the records that are no rows behind it. Ends the
  // walk.
  Cut cut();

 private:
  bool read_on();

  std::optional<WandbLogReader> reader_;  // while the walk goes on
  std::optional<std::string> row_;        // the record that was read and is not that of cut_
  Cut cut_;
};

}  // namespace tandem::runs
