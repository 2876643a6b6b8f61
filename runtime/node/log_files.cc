// Logs are read by pread at offsets and never scanned as a whole: the cost of a look at a log is
// bounded by kLogReadBytesMax, whatever its size. A file may grow, be truncated or be rotated
// between two calls. All files of a log are opened from the newest to the oldest: one that is
// rotated meanwhile is met twice, and counted once, and none is passed over.
//
// The name of a file carries the actor and the incarnation, so that a directory is its own index.
// '/' is written as '.' there; so "a.b" and "a/b" have one name, which reads as "a/b".
#include "runtime/node/log_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/node/log_rotation.h"

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

// The files of a log, oldest first, at least one. An error where there is no NAME.log; the others
// are as many as there are.
Result<std::vector<OpenFile>> open_log(const std::filesystem::path& log) {
  std::vector<OpenFile> files;
  int missing = 0;  // a crash amid a rotation leaves a gap of one number
  for (int n = 0; n <= kLogFilesMax && missing < 2; ++n) {
    auto file = open_regular(rotated_path(log, n), Links::kRefused);
    if (!file && n == 0) return file.error();
    missing = file ? 0 : missing + 1;
    const bool known = file && std::ranges::any_of(files, [&](const OpenFile& other) {
                         return other.inode == file->inode;
                       });
    if (file && !known) files.push_back(std::move(*file));
  }
  std::ranges::reverse(files);
  return files;
}

// Where the oldest of these files begins in the whole log.
std::uint64_t begin_of(const std::vector<OpenFile>& files, const std::filesystem::path& log) {
  const auto head = read_at(files.back(), 0, kLogHeadBytes, log);
  return head ? dropped_bytes_in(*head) : 0;
}

// In the place of bytes that were removed before they were read.
std::string gone_line(std::uint64_t bytes) {
  return "[" + std::to_string(bytes) +
         " bytes are left out: they were removed before they were read]\n";
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

Result<LogTail> tail_log(const std::filesystem::path& log, std::size_t lines_max,
                         std::size_t bytes_max) {
  auto files = open_log(log);
  if (!files) return files.error();
  std::uint64_t bytes = 0;
  for (const OpenFile& file : *files) bytes += file.bytes;
  std::uint64_t skipped = bytes - std::min<std::uint64_t>(bytes, bytes_max);
  LogTail tail{.text = {}, .left_out = skipped, .rest = LogReader(log)};
  const std::uint64_t oldest = begin_of(*files, log);
  tail.rest.begin_ = oldest + bytes - files->back().bytes;
  for (const OpenFile& file : *files) {
    const std::uint64_t begin = std::min(skipped, file.bytes);
    skipped -= begin;
    auto part = read_at(file, begin, static_cast<std::size_t>(file.bytes - begin), log);
    if (!part) return part.error();
    tail.text += *part;
    tail.rest.offset_ = begin + part->size();
  }
  tail.rest.file_ = std::move(files->back());
  std::size_t start = start_of_last_lines(tail.text, lines_max);
  if (start == 0 && tail.left_out > 0) {  // the read may have begun inside a line
    const std::size_t newline = tail.text.find('\n');
    if (newline != std::string::npos) start = newline + 1;
  }
  tail.text.erase(0, start);
  tail.left_out += start;
  tail.begin = oldest + tail.left_out;
  return tail;
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

Result<LogChunk> LogReader::more(Time now) {
  if (!file_) {
    auto files = open_log(log_);
    if (!files) return files.error();
    begin_ = begin_of(*files, log_);
    file_ = std::move(files->front());
  }
  struct stat facts {};
  if (::fstat(file_->fd.get(), &facts) == 0 && static_cast<std::uint64_t>(facts.st_size) < offset_)
    offset_ = 0;  // it was truncated
  auto text = read_at(*file_, offset_, kLogReadBytesMax, log_);
  if (!text) return text.error();
  offset_ += text->size();
  if (!text->empty()) return LogChunk{.text = std::move(*text)};
  return go_on(now);
}

// file_ is read to its end: goes on with the file that follows it, if there is one and file_ has
// settled.
Result<LogChunk> LogReader::go_on(Time now) {
  auto files = open_log(log_);
  if (!files) return LogChunk{.text = {}, .at_end = true};  // the run was deleted
  auto next = std::ranges::find(*files, file_->inode, &OpenFile::inode);
  const bool gone = next == files->end();
  next = gone ? files->begin() : std::next(next);
  if (next == files->end()) return LogChunk{.text = {}, .at_end = true};
  if (!left_) left_ = now;
  if (now < *left_ + kLogSettles) return LogChunk{};
  left_.reset();
  const std::uint64_t end = begin_ + offset_;
  begin_ = gone ? begin_of(*files, log_) : end;
  offset_ = 0;
  file_ = std::move(*next);
  if (begin_ <= end) return LogChunk{};
  return LogChunk{.text = gone_line(begin_ - end)};
}

Result<LogTail> log_from(const std::filesystem::path& log, std::uint64_t begin) {
  auto files = open_log(log);
  if (!files) return files.error();
  LogTail tail{.text = {}, .left_out = 0, .rest = LogReader(log), .begin = begin};
  LogReader& rest = tail.rest;
  rest.begin_ = begin_of(*files, log);
  if (begin < rest.begin_) tail.text = gone_line(rest.begin_ - begin);
  auto file = files->begin();
  for (; std::next(file) != files->end() && begin >= rest.begin_ + file->bytes; ++file)
    rest.begin_ += file->bytes;
  if (begin > rest.begin_) rest.offset_ = std::min(begin - rest.begin_, file->bytes);
  rest.file_ = std::move(*file);
  return tail;
}

std::string to_string(const LogPosition& position) {
  return std::to_string(position.incarnation.value) + ":" + std::to_string(position.bytes);
}

std::optional<LogPosition> parse_log_position(std::string_view text) {
  LogPosition position;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, position.incarnation.value);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, position.bytes);
  if (second.ec != std::errc{} || second.ptr != end) return std::nullopt;
  return position;
}

std::uint64_t log_bytes_of(std::string_view line) {
  std::string_view said = line;
  for (const std::string_view start : {"[", "the first "})
    if (said.starts_with(start)) said.remove_prefix(start.size());
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(said.data(), said.data() + said.size(), bytes);
  said.remove_prefix(static_cast<std::size_t>(read.ptr - said.data()));
  const bool note = line.starts_with('[') && read.ec == std::errc{} &&
                    said.starts_with(" bytes are left out") && line.ends_with(']');
  return note ? bytes : line.size() + 1;
}

std::size_t drop_old_incarnations(const std::filesystem::path& log, std::size_t kept) {
  const auto name = log_name(log.filename().string());
  if (!name) return 0;
  const auto all = log_incarnations(log.parent_path(), name->actor);
  const std::size_t old = all.size() - std::min(all.size(), kept);
  for (std::size_t i = 0; i < old; ++i)
    remove_log(log_path(log.parent_path(), name->actor, all[i]));
  return old;
}

}  // namespace tandem::node
