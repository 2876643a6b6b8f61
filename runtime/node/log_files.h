// The log of an actor's incarnation: one file that its processes append to, read by offset so that
// a reader anywhere can follow it without holding it open. Writing is the process's own stderr.
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

namespace tandem::runtime {

inline constexpr std::size_t kLogReadBytesMax = std::size_t{1} << 20;  // of one read

// <directory>/<actor, '/' written as '.'>.<incarnation>.log
std::filesystem::path log_path(const std::filesystem::path& directory, std::string_view actor,
                               Incarnation incarnation);

// The incarnations of `actor` that have a log in `directory`, oldest first.
std::vector<Incarnation> log_incarnations(const std::filesystem::path& directory,
                                          std::string_view actor);

// The newest one before `current` that has a log: what `--previous` shows.
std::optional<Incarnation> previous_log(const std::filesystem::path& directory,
                                        std::string_view actor, Incarnation current);

struct ActorLogs {
  std::string actor;                      // "rollout/0"
  std::vector<Incarnation> incarnations;  // oldest first
};
// All logs in `directory`, by actor. Links are no logs.
std::vector<ActorLogs> logs_in(const std::filesystem::path& directory);

struct LogChunk {
  std::string text;
  std::uint64_t offset = 0;       // where `text` begins in the file
  std::uint64_t next_offset = 0;  // where the next read goes on
};

// The last `lines_max` lines, or fewer if they exceed `bytes_max`, which is all that is read. A
// last line without a newline counts as one.
Result<LogChunk> tail_log(const std::filesystem::path& path, std::size_t lines_max,
                          std::size_t bytes_max = kLogReadBytesMax);

// The time that a log line begins with, in milliseconds since 1970; none if it begins otherwise.
std::optional<std::int64_t> line_time_ms(std::string_view line);

// Where the lines of `text` begin that are not older than `unix_ms`. A line without a time is as
// old as the one before it; where no line has a time, none is known to be old.
std::size_t lines_since(std::string_view text, std::int64_t unix_ms);

// What has been written since `offset`, at most kLogReadBytesMax; empty if nothing. An offset
// beyond the end means that the file was truncated: reads from its start.
Result<LogChunk> read_log(const std::filesystem::path& path, std::uint64_t offset);

}  // namespace tandem::runtime
