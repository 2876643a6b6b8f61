// A file of lines of a run, as metrics.jsonl, with a limit: when it has grown to that, lines go so
// that others can come, and the file that readers know goes on under its name.
//
//   BO-1  The file has at most the limit and a line.
//   BO-2  The lines that go are the oldest (kDropOldest), or every second of the older half
//         (kThin), where records of evaluations stay as long as others can go. The newest stay.
//   BO-3  A reader finds the file before or the file after, whole: the lines that stay are written
//         aside, and a rename puts them in place. A failure, as of a full disk, changes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/append_file.h"
#include "runtime/base/result.h"

namespace tandem::runs {

// What has gone of a file, in all incarnations of the run.
struct Dropped {
  std::int64_t lines = 0, bytes = 0, times = 0;
};
// From RUN_DIR/dropped.json; nothing where there is none.
Dropped dropped_of(const std::filesystem::path& run_dir, const std::string& file);

enum class Retention { kDropOldest, kThin };

class BoundedLines {
 public:
  BoundedLines() = default;  // open() before the first append()
  static Result<BoundedLines> open(const std::filesystem::path& path, Retention retention,
                                   std::uint64_t bytes_max);

  // Takes a line without its newline. True: lines have gone, for the first time of this object.
  Result<bool> append(std::string_view line);
  // Keeps only the lines for which `keep` is true, in the way in which append() makes room. The
  // others do not count as dropped.
  using Keep = std::function<bool(std::uint64_t offset, std::string_view line)>;
  Result<void> rewrite(const Keep& keep);
  std::uint64_t bytes() const { return file_.bytes(); }

 private:
  BoundedLines(AppendFile file, std::filesystem::path path, Retention retention,
               std::uint64_t bytes_max)
      : file_(std::move(file)),
        path_(std::move(path)),
        retention_(retention),
        bytes_max_(bytes_max) {}
  Result<void> make_room();
  Result<void> thin(bool evaluations);

  AppendFile file_;
  std::filesystem::path path_;
  Retention retention_ = Retention::kDropOldest;
  std::uint64_t bytes_max_ = 0;
  std::int64_t lines_gone_ = 0;  // by the last rewrite()
  bool said_ = false;
};

}  // namespace tandem::runs
