#include "runtime/node/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "runtime/base/file.h"

namespace tandem::runtime {
namespace {

std::string dotted(std::string_view actor) {
  std::string name(actor);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

struct OpenLog {
  OwnedFd fd;
  std::uint64_t size = 0;
};

Result<OpenLog> open_log(const std::filesystem::path& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return file_error("open log", path);
  struct stat facts;
  if (::fstat(fd.get(), &facts) != 0) return file_error("read log", path);
  return OpenLog{.fd = std::move(fd), .size = static_cast<std::uint64_t>(facts.st_size)};
}

// Up to `bytes` from `offset`; fewer at the end of the file.
Result<std::string> read_at(const OpenLog& log, std::uint64_t offset, std::size_t bytes,
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

// Where the last `lines_max` lines of `text` begin.
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

std::vector<Incarnation> log_incarnations(const std::filesystem::path& directory,
                                          std::string_view actor) {
  const std::string prefix = dotted(actor) + ".";
  constexpr std::string_view kSuffix = ".log";
  std::vector<Incarnation> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (!file.starts_with(prefix) || !file.ends_with(kSuffix)) continue;
    if (file.size() <= prefix.size() + kSuffix.size()) continue;
    // "a.1.2.log" is incarnation 2 of a/1, and no incarnation of a: only digits count.
    const char* first = file.data() + prefix.size();
    const char* last = file.data() + file.size() - kSuffix.size();
    Incarnation incarnation;
    const auto [stop, failure] = std::from_chars(first, last, incarnation.value);
    if (failure == std::errc{} && stop == last) found.push_back(incarnation);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Incarnation> previous_log(const std::filesystem::path& directory,
                                        std::string_view actor, Incarnation current) {
  const std::vector<Incarnation> all = log_incarnations(directory, actor);
  const auto at = std::lower_bound(all.begin(), all.end(), current);
  if (at == all.begin()) return std::nullopt;
  return *std::prev(at);
}

Result<LogChunk> tail_log(const std::filesystem::path& path, std::size_t lines_max) {
  const Result<OpenLog> log = open_log(path);
  if (!log) return log.error();
  const std::uint64_t bytes = std::min<std::uint64_t>(log->size, kLogReadBytesMax);
  const std::uint64_t offset = log->size - bytes;
  Result<std::string> text = read_at(*log, offset, static_cast<std::size_t>(bytes), path);
  if (!text) return text.error();
  std::size_t start = start_of_last_lines(*text, lines_max);
  if (start == 0 && offset > 0) {  // the read may have begun inside a line
    const std::size_t newline = text->find('\n');
    if (newline != std::string::npos) start = newline + 1;
  }
  return LogChunk{.text = text->substr(start), .next_offset = offset + text->size()};
}

Result<LogChunk> read_log(const std::filesystem::path& path, std::uint64_t offset) {
  const Result<OpenLog> log = open_log(path);
  if (!log) return log.error();
  if (offset > log->size) offset = 0;
  const std::uint64_t bytes = std::min<std::uint64_t>(log->size - offset, kLogReadBytesMax);
  Result<std::string> text = read_at(*log, offset, static_cast<std::size_t>(bytes), path);
  if (!text) return text.error();
  return LogChunk{.text = *text, .next_offset = offset + text->size()};
}

}  // namespace tandem::runtime
