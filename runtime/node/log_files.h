// The logs of actors: one per incarnation, to which its processes append. They write by their own
// stderr (process_host.h) and rotate it (log_rotation.h): a log is the file NAME.log, and before it
// NAME.log.1, NAME.log.2, …; whoever names a log names NAME.log. This header only reads, over all
// files of a log. Logs that do not exist or cannot be read are Errors of the reading functions; a
// directory that cannot be read has no logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace tandem::node {

inline constexpr std::size_t kLogReadBytesMax = std::size_t{1} << 20;  // the most in one answer

// <directory>/<actor, '/' written as '.'>.<incarnation>.log
std::filesystem::path log_path(const std::filesystem::path& directory, std::string_view actor,
                               Incarnation incarnation);

// The incarnations of `actor` that have a log in `directory`, oldest first.
std::vector<Incarnation> log_incarnations(const std::filesystem::path& directory,
                                          std::string_view actor);

// The newest incarnation before `current` that has a log; `--previous` of the command line shows
// it.
std::optional<Incarnation> previous_log(const std::filesystem::path& directory,
                                        std::string_view actor, Incarnation current);

struct ActorLogs {
  std::string actor;                      // "rollout/0"
  std::vector<Incarnation> incarnations;  // oldest first
};
// All logs in `directory`, by actor. Only regular files count, and not symbolic links. A '.' in a
// file's name is read as '/'.
std::vector<ActorLogs> logs_in(const std::filesystem::path& directory);

// A part of a log as it grows.
struct LogChunk {
  std::string text;     // may begin and end within a line
  bool at_end = false;  // there was no more at that moment
};

struct LogTail;

// Reads a log on from where the last read has ended, also over rotations. It holds the file that it
// reads open: so none that is made meanwhile is taken for it.
//
//   LF-1  A reader gets each byte of the log once, in order. Where it comes so late that files have
//         gone which it has not read, a line in their place says so.
class LogReader {
 public:
  explicit LogReader(std::filesystem::path log) : log_(std::move(log)) {}  // from its start
  // At most kLogReadBytesMax. An error where there is no log. `now` never goes back.
  Result<LogChunk> more(Time now);

 private:
  friend Result<LogTail> tail_log(const std::filesystem::path&, std::size_t, std::size_t);
  friend Result<LogTail> log_from(const std::filesystem::path&, std::uint64_t);
  Result<LogChunk> go_on(Time now);

  std::filesystem::path log_;
  std::optional<OpenFile> file_;
  std::uint64_t begin_ = 0;   // of file_ in the whole log, with what is gone of it
  std::uint64_t offset_ = 0;  // in file_
  std::optional<Time> left_;  // since when a newer file is known to follow file_
};
// So long a file is read on after it was rotated: writes to it may have been under way.
inline constexpr Duration kLogSettles = std::chrono::seconds(1);

struct LogTail {
  std::string text;
  std::uint64_t left_out = 0;  // the bytes of the log before `text`
  LogReader rest;              // goes on behind `text`
  std::uint64_t begin = 0;     // of `text` in the whole log, with what is gone of it
};

// The last `lines_max` lines, or as many whole ones as lie in the last `bytes_max` bytes, which is
// all that is read. A last line without a newline counts as one. The text ends where the log ends.
Result<LogTail> tail_log(const std::filesystem::path& log, std::size_t lines_max,
                         std::size_t bytes_max = kLogReadBytesMax);

// The log behind its first `begin` bytes, counted as LogTail::begin is; `text` is empty but for the
// line of LF-1.
Result<LogTail> log_from(const std::filesystem::path& log, std::uint64_t begin);

// Where a reader of an incarnation's log stands. As text: "3:1024".
struct LogPosition {
  Incarnation incarnation;
  std::uint64_t bytes = 0;  // of the whole log, with what is gone of it
};
std::string to_string(const LogPosition& position);
std::optional<LogPosition> parse_log_position(std::string_view text);
// The header of a followed log's answer that has the position at which the answer begins.
inline constexpr const char* kLogPositionHeader = "tandem-log-position";
// By how many bytes a line of such an answer moves the position on: its own, or those that it says
// are left out.
std::uint64_t log_bytes_of(std::string_view line);

// The time at the start of a log line ("2026-11-24T09:30:00.123Z", log.h), in milliseconds since
// 1970; none if the line begins otherwise.
std::optional<std::int64_t> line_time_ms(std::string_view line);

// The offset in `text` of the first line that is not older than `unix_ms`; text.size() if all are
// older. A line without a time is as old as the line before it. Where no line has a time, none is
// known to be old, and the offset is 0.
std::size_t lines_since(std::string_view text, std::int64_t unix_ms);

// Removes the logs of all but the newest `kept` incarnations of the actor whose log this is.
// Returns how many went.
std::size_t drop_old_incarnations(const std::filesystem::path& log, std::size_t kept);
inline constexpr std::size_t kIncarnationsKept = 20;

}  // namespace tandem::node
