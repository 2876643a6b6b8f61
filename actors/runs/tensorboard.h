// TensorBoard's view of a run: the scalars of metrics.jsonl as event files in RUN_DIR/tensorboard,
// one file per incarnation of the run (from its start, or a resume, to its end). The files are an
// extra that can be made again: metrics.jsonl is what the run keeps. Not here: the reading of a
// line (metrics_line.h), and what becomes of a run whose event files cannot be written
// (run_files.h).
//
//   TB-1  After add(line) TensorBoard shows of the folder exactly the lines of metrics.jsonl up to
//         and with that one, whatever earlier incarnations left out, or lost at the end of a file;
//         and those of earlier steps that have gone from metrics.jsonl, as when it was thinned.
//   TB-2  No file that is there is changed, and the name of a new one sorts after all of them, also
//         where the clock went back: TensorBoard reads files in the order of their names.
//
// Sources of the formats: TensorFlow's lib/io/record_writer.h (a record is the u64 length of its
// data, masked CRC-32C of these eight bytes, data, masked CRC-32C of the data; all little-endian)
// and util/event.proto, framework/summary.proto for the data. These fields of the two .proto files
// are used:
//   Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
//           SessionLog session_log = 7; }
//   Summary { repeated Value value = 1; }  Value { string tag = 1; float simple_value = 2; }
//   SessionLog { SessionStatus status = 1; }  SessionStatus { START = 1; }
// At a START event TensorBoard forgets every step that it has read so far and that is not below the
// event's own (tensorboard/backend/event_processing/event_accumulator.py).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/runs/metrics_line.h"
#include "actors/runs/tracker.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::runs {

// Writes the event file of one incarnation of one run. A single thread uses it.
class TensorboardWriter final : public Tracker {
 public:
  // Touches nothing before the first add(). `clock` is the wall time in milliseconds since 1970.
  explicit TensorboardWriter(std::filesystem::path run_dir,
                             std::function<std::int64_t()> clock = unix_ms)
      : run_dir_(std::move(run_dir)), clock_(std::move(clock)) {}

  // Writes the line's finite numbers as one event and hands it to the operating system.
  // metrics.jsonl has the line already, or will have it next. The first call begins the file, with
  // those lines of metrics.jsonl before this one that earlier files do not show. Numbers beyond a
  // float's range are left out. After an error (a full disk, a folder that cannot be written) the
  // object must not be used again; a later incarnation of the run writes the missing lines.
  Result<void> add(std::string_view metrics_line) override;
  std::string_view name() const override { return "tensorboard"; }

 private:
  double now() const;  // seconds since 1970
  Result<void> begin();
  Result<void> begin_file(const std::vector<std::filesystem::path>& earlier);
  // How metrics.jsonl and earlier files differ when a file begins.
  struct Former {
    std::int64_t end = 0;              // lines of this step and later ones are no history of line_
    std::int64_t forgotten_from = 0;   // the step from which on TensorBoard must forget
    std::vector<std::uint64_t> shown;  // digests of the events that stay, sorted
    bool all_shown = false;            // no line is missing
  };
  Result<Former> compare(const std::vector<std::filesystem::path>& earlier) const;
  Result<void> write_history(const Former& former);
  Result<void> write(std::string& records);
  using TakeLine = std::function<void(const MetricsLine& line)>;
  Result<void> each_line(const TakeLine& take) const;

  const std::filesystem::path run_dir_;
  const std::function<std::int64_t()> clock_;
  std::filesystem::path path_;  // the path of file_
  std::ofstream file_;          // open from the first add()
  MetricsLine line_;            // the newest
};

}  // namespace tandem::runs
