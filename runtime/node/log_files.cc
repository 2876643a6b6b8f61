// Logs are read by pread at offsets and never scanned as a whole: the cost of a look at a log is
// bounded by kLogReadBytesMax, whatever its size. A file may grow, be truncated or be replaced
// between two calls; each call opens it anew and takes its size once.
//
// The name of a file carries the actor and the incarnation, so that a directory is its own index.
// '/' is written as '.' there; so "a.b" and "a/b" have one name, which reads as "a/b".
#include "runtime/node/log_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <map>
#include <system_error>

#include "runtime/base/file.h"

namespace tandem::node {
namespace {

std::string dotted(std::string_view actor) {
  std::string name(actor);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

constexpr std::string_view kSuffix = ".log";

struct LogName {
  std::string actor;
  Incarnation incarnation;
};

// "rollout.0.3.log" is the log of incarnation 3 of rollout/0. nullopt for any other form of name.
std::optional<LogName> log_name(std::string_view file) {
  if (!file.ends_with(kSuffix)) return std::nullopt;
  file.remove_suffix(kSuffix.size());
  const std::size_t dot = file.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  LogName name{std::string(file.substr(0, dot)), {}};
  std::replace(name.actor.begin(), name.actor.end(), '.', '/');
  const auto [stop, failure] =
      std::from_chars(file.data() + dot + 1, file.data() + file.size(), name.incarnation.value);
  if (failure != std::errc{} || stop != file.data() + file.size()) return std::nullopt;
  return name;
}

// Up to `bytes` from `offset`; fewer at the end of the file.
Result<std::string> read_at(const OpenFile& log, std::uint64_t offset, std::size_t bytes,
                            const std::filesystem::path& path) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(log.fd.get(), text.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read log", path);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

// The offset at which the last `lines_max` lines of `text` begin, found by a search backwards.
std::size_t start_of_last_lines(std::string_view text, std::size_t lines_max) {
  std::size_t start = text.size();
  if (start > 0 && text[start - 1] == '\n') --start;  // the newline that ends the last line
  for (std::size_t line = 0; line < lines_max && start > 0; ++line) {
    const std::size_t newline = text.rfind('\n', start - 1);
    if (newline == std::string_view::npos) return 0;
    if (line + 1 == lines_max) return newline + 1;
    start = newline;
  }
  return lines_max == 0 ? text.size() : 0;
}

}  // namespace

std::filesystem::path log_path(const std::filesystem::path& directory, std::string_view actor,
                               Incarnation incarnation) {
  return directory / (dotted(actor) + "." + std::to_string(incarnation.value) + ".log");
}

std::vector<ActorLogs> logs_in(const std::filesystem::path& directory) {
  std::map<std::string, std::vector<Incarnation>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = log_name(entry->path().filename().string());
    std::error_code ignored;
    if (!name || !std::filesystem::is_regular_file(entry->symlink_status(ignored))) continue;
    found[name->actor].push_back(name->incarnation);
  }
  std::vector<ActorLogs> logs;
  for (auto& [actor, incarnations] : found) {
    std::sort(incarnations.begin(), incarnations.end());
    logs.push_back({actor, std::move(incarnations)});
  }
  return logs;
}

std::vector<Incarnation> log_incarnations(const std::filesystem::path& directory,
                                          std::string_view actor) {
  std::string name(actor);
  std::replace(name.begin(), name.end(), '.', '/');  // as logs_in reads names
  for (ActorLogs& logs : logs_in(directory))
    if (logs.actor == name) return std::move(logs.incarnations);
  return {};
}

std::optional<Incarnation> previous_log(const std::filesystem::path& directory,
                                        std::string_view actor, Incarnation current) {
  const std::vector<Incarnation> all = log_incarnations(directory, actor);
  const auto at = std::lower_bound(all.begin(), all.end(), current);
  if (at == all.begin()) return std::nullopt;
  return *std::prev(at);
}

Result<LogChunk> tail_log(const std::filesystem::path& path, std::size_t lines_max,
                          std::size_t bytes_max) {
  const auto log = open_regular(path, Links::kRefused);
  if (!log) return log.error();
  const std::uint64_t bytes = std::min<std::uint64_t>(log->bytes, bytes_max);
  const std::uint64_t offset = log->bytes - bytes;
  Result<std::string> text = read_at(*log, offset, static_cast<std::size_t>(bytes), path);
  if (!text) return text.error();
  std::size_t start = start_of_last_lines(*text, lines_max);
  if (start == 0 && offset > 0) {  // the read may have begun inside a line
    const std::size_t newline = text->find('\n');
    if (newline != std::string::npos) start = newline + 1;
  }
  return LogChunk{
      .text = text->substr(start), .offset = offset + start, .next_offset = offset + text->size()};
}

std::optional<std::int64_t> line_time_ms(std::string_view line) {
  // A '0' stands for any digit; the other characters must be as they are here.
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z";
  if (line.size() < kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = line[i] >= '0' && line[i] <= '9';
    if (kForm[i] == '0' ? !digit : line[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [line](std::size_t at, std::size_t digits) {
    int value = 0;
    std::from_chars(line.data() + at, line.data() + at + digits, value);
    return value;
  };
  const std::chrono::sys_days day = std::chrono::year(number(0, 4)) / number(5, 2) / number(8, 2);
  const auto time = day + std::chrono::hours(number(11, 2)) + std::chrono::minutes(number(14, 2)) +
                    std::chrono::seconds(number(17, 2)) + std::chrono::milliseconds(number(20, 3));
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::size_t lines_since(std::string_view text, std::int64_t unix_ms) {
  bool timed = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto time = line_time_ms(text.substr(at));
    if (time && *time >= unix_ms) return at;
    timed = timed || time.has_value();
    const std::size_t newline = text.find('\n', at);
    at = newline == std::string_view::npos ? text.size() : newline + 1;
  }
  return timed ? text.size() : 0;
}

Result<LogChunk> read_log(const std::filesystem::path& path, std::uint64_t offset) {
  const auto log = open_regular(path, Links::kRefused);
  if (!log) return log.error();
  if (offset > log->bytes) offset = 0;
  const std::uint64_t bytes = std::min<std::uint64_t>(log->bytes - offset, kLogReadBytesMax);
  Result<std::string> text = read_at(*log, offset, static_cast<std::size_t>(bytes), path);
  if (!text) return text.error();
  return LogChunk{.text = *text, .offset = offset, .next_offset = offset + text->size()};
}

}  // namespace tandem::node
