// A rotation in the order of its system calls, each of which leaves a log that readers understand:
// the oldest file is removed, the others move one number up, NAME.log gets the second name
// NAME.log.1, the new file takes the name NAME.log by a rename. Then the process moves its
// descriptors. Two processes that share a log exclude each other by a lock on the file that is
// rotated, and whoever comes second goes on in the new file.
#include "runtime/node/log_rotation.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

namespace tandem::node {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kDroppedField = " dropped_bytes=";

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// False where there is no such regular file.
bool facts_of(const fs::path& path, struct stat& facts) {
  return ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

OwnedFd open_to_append(const fs::path& path, int more = 0) {
  return OwnedFd(::open(path.c_str(),
                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | more,
                        0644));
}

// Reads a number of a variable; `otherwise` where it is not set.
Result<std::uint64_t> number_in(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  const std::string_view digits(text);
  std::uint64_t number = 0;
  const auto [stop, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure == std::errc{} && stop == digits.data() + digits.size()) return number;
  return Error{ErrorCode::kInvalid, "`" + std::string(digits) + "` is no whole number", variable,
               "give a number such as " + std::to_string(otherwise)};
}

// A former file of a log, NAME.log.NUMBER.
struct Former {
  int number = 0;
  std::uint64_t bytes = 0;  // that go with it: 0 where the file has another name
  bool goes = false;
};

// The former files, the oldest first. Those go that would be more than `files_max` with the next.
std::vector<Former> former_files(const fs::path& log, int files_max) {
  std::vector<Former> files;
  struct stat facts {};
  for (int n = kLogFilesMax; n >= 1; --n)
    if (facts_of(rotated_path(log, n), facts))
      files.push_back({.number = n,
                       .bytes = facts.st_nlink == 1 ? static_cast<std::uint64_t>(facts.st_size) : 0,
                       .goes = n + 1 >= files_max});
  return files;
}

Result<void> make_room(const fs::path& log, const std::vector<Former>& files) {
  for (const Former& file : files) {
    const fs::path path = rotated_path(log, file.number);
    const int failed = file.goes
                           ? ::unlink(path.c_str())
                           : ::rename(path.c_str(), rotated_path(log, file.number + 1).c_str());
    if (failed != 0) return file_error("rotate the log", path);
  }
  return {};
}

// The first line of a new file, in the form of log.h.
std::string first_line(const fs::path& log, std::uint64_t bytes, std::uint64_t dropped) {
  const std::int64_t now = unix_ms();
  const std::time_t seconds = now / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z I log event=log_rotated before=\"{}\" bytes={}{}{}\n", time.data(),
                     now % 1000, rotated_path(log, 1).filename().string(), bytes, kDroppedField,
                     dropped);
}

}  // namespace

Result<LogLimits> LogLimits::from_environment() {
  LogLimits limits;
  const auto bytes = number_in("TANDEM_LOG_MAX_BYTES", limits.bytes_max);
  if (!bytes) return bytes.error();
  if (*bytes > 0 && *bytes < kLogBytesMin)
    return Error{ErrorCode::kInvalid,
                 "a log cannot be kept below " + std::to_string(kLogBytesMin) + " bytes",
                 "TANDEM_LOG_MAX_BYTES", "0 stands for no limit"};
  const auto files =
      number_in("TANDEM_LOG_MAX_FILES", static_cast<std::uint64_t>(limits.files_max));
  if (!files) return files.error();
  if (*files < 1 || *files > kLogFilesMax)
    return Error{ErrorCode::kInvalid,
                 "a log has 1 to " + std::to_string(kLogFilesMax) + " files",
                 "TANDEM_LOG_MAX_FILES",
                 {}};
  return LogLimits{.bytes_max = *bytes, .files_max = static_cast<int>(*files)};
}

std::pair<std::string, std::string> log_setting(const fs::path& log) {
  std::error_code failed;  // the process may run in another folder
  const fs::path absolute = fs::absolute(log, failed);
  return {kLogVariable, (failed ? log : absolute).string()};
}

fs::path rotated_path(const fs::path& log, int number) {
  fs::path path = log;
  if (number > 0) path += "." + std::to_string(number);
  return path;
}

Result<Rotated> rotate_log(const fs::path& log, int files_max) {
  const OwnedFd current(::open(log.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!current) return file_error("rotate the log", log);
  if (::flock(current.get(), LOCK_EX | LOCK_NB) != 0) return Rotated{};
  struct stat ours {
  }, named{}, former{};
  if (::fstat(current.get(), &ours) != 0) return file_error("rotate the log", log);
  if (!facts_of(log, named) || !same_file(ours, named)) return Rotated{};
  // LR-2: a rotation that a crash cut short may have given the file its second name.
  const bool named_twice = facts_of(rotated_path(log, 1), former) && same_file(ours, former);
  const std::vector<Former> files =
      named_twice ? std::vector<Former>{} : former_files(log, files_max);
  Rotated done;
  for (const Former& file : files)
    if (file.goes) done.dropped_bytes += file.bytes;
  if (files_max == 1) done.dropped_bytes += static_cast<std::uint64_t>(ours.st_size);
  // The new file is there, with its first line, before anything else changes: a full disk ends the
  // attempt here.
  fs::path aside = log;
  aside += ".new";
  done.fresh = open_to_append(aside, O_TRUNC);
  const std::string first = first_line(log, static_cast<std::uint64_t>(ours.st_size),
                                       dropped_bytes_of(log) + done.dropped_bytes);
  if (!done.fresh || !write_all(done.fresh.get(), std::as_bytes(std::span(first))))
    return file_error("begin the next log", aside);
  if (const auto room = make_room(log, files); !room) return room.error();
  if (!named_twice && files_max > 1 && ::link(log.c_str(), rotated_path(log, 1).c_str()) != 0)
    return file_error("rotate the log", rotated_path(log, 1));
  if (::rename(aside.c_str(), log.c_str()) != 0) return file_error("rotate the log", log);
  return done;
}

void remove_log(const fs::path& log) {
  for (int n = 0; n <= kLogFilesMax; ++n) (void)::unlink(rotated_path(log, n).c_str());
}

std::uint64_t dropped_bytes_of(const fs::path& log) {
  return dropped_bytes_in(file_head(log, kLogHeadBytes));
}

std::uint64_t dropped_bytes_in(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  const std::size_t at = line.find(kDroppedField);
  std::uint64_t bytes = 0;
  if (line.find("event=log_rotated") == std::string_view::npos || at == std::string_view::npos)
    return 0;
  std::from_chars(line.data() + at + kDroppedField.size(), line.data() + line.size(), bytes);
  return bytes;
}

OwnLog::OwnLog(fs::path path, std::vector<int> descriptors, const LogLimits& limits)
    : path_(std::move(path)), descriptors_(std::move(descriptors)), limits_(limits) {}

OwnLog OwnLog::inherited() {
  const char* const variable = std::getenv(kLogVariable);
  if (!variable) return {};
  const fs::path path = variable;
  ::unsetenv(kLogVariable);  // programs that this process starts have other logs
  struct stat named {
  }, open{};
  std::vector<int> descriptors;
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (facts_of(path, named) && ::fstat(fd, &open) == 0 && same_file(named, open))
      descriptors.push_back(fd);
  if (descriptors.empty()) return {};
  const auto limits = LogLimits::from_environment();
  if (!limits)
    log::warn("event=log_limits_unread where={} message=\"{}\" help=\"{}\"", limits.error().where,
              limits.error().message, "the defaults hold");
  return {path, std::move(descriptors), limits ? *limits : LogLimits{}};
}

void OwnLog::look() {
  if (path_.empty() || limits_.bytes_max == 0) return;
  struct stat open {
  }, named{};
  if (::fstat(descriptors_.front(), &open) != 0) return;
  if (facts_of(path_, named) && same_file(open, named)) {
    if (static_cast<std::uint64_t>(open.st_size) >= limits_.bytes_max) rotate();
    return;
  }
  // Without its folder, as of a run that was deleted, there is nowhere to go on.
  if (const OwnedFd file = open_to_append(path_)) go_on_in(file);
}

void OwnLog::rotate() {
  const auto rotated = rotate_log(path_, limits_.files_max);
  if (!rotated) {
    if (!std::exchange(failed_, true))
      log::warn("event=log_not_rotated file=\"{}\" message=\"{}\" consequence=\"{}\"",
                rotated.error().where, rotated.error().message,
                "the log grows beyond TANDEM_LOG_MAX_BYTES until it can be rotated");
    return;
  }
  if (!rotated->fresh) return;  // the next look() finds the new file
  failed_ = false;
  go_on_in(rotated->fresh);
  if (rotated->dropped_bytes > 0 && !std::exchange(dropped_, true))
    log::warn("event=log_dropped bytes={} files={} help=\"{}\"", rotated->dropped_bytes,
              limits_.files_max,
              "the oldest file of this log is gone, as all further ones will be; "
              "TANDEM_LOG_MAX_BYTES and TANDEM_LOG_MAX_FILES say how much stays");
}

void OwnLog::go_on_in(const OwnedFd& file) const {
  for (const int fd : descriptors_)
    while (::dup2(file.get(), fd) < 0 && errno == EINTR) {
    }
}

}  // namespace tandem::node
