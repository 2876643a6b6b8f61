// The logs of actors: one file per incarnation, to which its processes append, and which is read by
// offset, so that a reader anywhere can follow a log without holding the file open. The processes
// write by their own stderr (process_host.h); this header only reads. Files that do not exist or
// cannot be read are Errors of the reading functions; a directory that cannot be read has no logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

struct LogChunk {
  std::string text;
  std::uint64_t offset = 0;       // where `text` begins in the file
  std::uint64_t next_offset = 0;  // where the next read goes on
};

// The last `lines_max` lines, or as many whole ones as lie in the last `bytes_max` bytes, which is
// all that is read. A last line without a newline counts as one. The chunk ends at the end of the
// file.
Result<LogChunk> tail_log(const std::filesystem::path& path, std::size_t lines_max,
                          std::size_t bytes_max = kLogReadBytesMax);

// The time at the start of a log line ("2026-11-24T09:30:00.123Z", log.h), in milliseconds since
// 1970; none if the line begins otherwise.
std::optional<std::int64_t> line_time_ms(std::string_view line);

// The offset in `text` of the first line that is not older than `unix_ms`; text.size() if all are
// older. A line without a time is as old as the line before it. Where no line has a time, none is
// known to be old, and the offset is 0.
std::size_t lines_since(std::string_view text, std::int64_t unix_ms);

// The bytes behind `offset`, at most kLogReadBytesMax; empty if there are none. May begin and end
// within a line. An offset beyond the end means that the file was truncated: reads from its start.
Result<LogChunk> read_log(const std::filesystem::path& path, std::uint64_t offset);

}  // namespace tandem::node
