// Lines are copied from the one file to the other through a buffer, so that the memory is bounded
// whatever the limit. A cut takes a part of the file each time, and so comes seldom: with 64 MiB of
// samples half of them go at once.
#include "actors/runs/bounded_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "actors/runs/metrics_line.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/line_file.h"
#include "runtime/base/log.h"

namespace tandem::runs {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDroppedFile = "dropped.json";
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// A file beside another one that takes its place in the end, or goes.
class Replacement {
 public:
  explicit Replacement(const fs::path& path) : path_(path), aside_(path) {
    aside_ += ".new";
    fd_ = OwnedFd(
        ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  }
  ~Replacement() {
    if (!placed_) (void)::unlink(aside_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  // False: errno says why.
  bool add(std::string_view line) {
    buffer_.append(line).push_back('\n');
    return buffer_.size() < kBufferBytes || flush();
  }
  Result<void> place() {
    placed_ =
        fd_ && flush() && ::fsync(fd_.get()) == 0 && ::rename(aside_.c_str(), path_.c_str()) == 0;
    if (!placed_) return error();
    return sync_directory(path_.parent_path());
  }
  Error error() const { return file_error("shorten the file", path_); }

 private:
  bool flush() {
    const bool written = write_all(fd_.get(), std::as_bytes(std::span(buffer_)));
    buffer_.clear();
    return written;
  }

  const fs::path path_;
  fs::path aside_;
  OwnedFd fd_;
  std::string buffer_;
  bool placed_ = false;
};

nlohmann::json all_dropped(const fs::path& run_dir) {
  const auto text = read_file(run_dir / kDroppedFile, kBufferBytes);
  auto all = text ? parse_json(*text) : nlohmann::json();
  return all.is_object() ? all : nlohmann::json::object();
}

// An extra for people: where it cannot be written, the lines have gone all the same.
void note_dropped(const fs::path& path, std::int64_t lines, std::int64_t bytes) {
  nlohmann::json all = all_dropped(path.parent_path());
  const Dropped before = dropped_of(path.parent_path(), path.filename().string());
  all[path.filename().string()] = {{"lines", before.lines + lines},
                                   {"bytes", before.bytes + bytes},
                                   {"times", before.times + 1}};
  if (const auto kept = write_file_atomic(path.parent_path() / kDroppedFile, dump_json(all) + "\n");
      !kept)
    log::warn("event=dropped_lines_not_noted file=\"{}\" message=\"{}\"", kept.error().where,
              kept.error().message);
}

}  // namespace

Dropped dropped_of(const fs::path& run_dir, const std::string& file) {
  const nlohmann::json all = all_dropped(run_dir);
  const auto found = all.find(file);
  Dropped dropped;
  if (found == all.end() || !found->is_object()) return dropped;
  for (const auto& [key, number] :
       {std::pair("lines", &dropped.lines), {"bytes", &dropped.bytes}, {"times", &dropped.times}})
    if (const auto value = found->find(key); value != found->end() && value->is_number_integer())
      *number = value->get<std::int64_t>();
  return dropped;
}

Result<BoundedLines> BoundedLines::open(const fs::path& path, Retention retention,
                                        std::uint64_t bytes_max) {
  auto file = AppendFile::open(path);
  if (!file) return file.error();
  return BoundedLines(*std::move(file), path, retention, bytes_max);
}

Result<bool> BoundedLines::append(std::string_view line) {
  bool first = false;
  if (file_.bytes() > 0 && file_.bytes() + line.size() + 1 > bytes_max_) {
    if (const auto room = make_room(); !room) return room.error();
    first = !std::exchange(said_, true);
  }
  if (const auto kept = file_.append(std::string(line) + '\n'); !kept) return kept.error();
  return first;
}

Result<void> BoundedLines::make_room() {
  const std::uint64_t before = file_.bytes();
  std::int64_t gone = 0;
  Result<void> done;
  if (retention_ == Retention::kThin) {
    done = thin(false);
    gone = lines_gone_;
    // Records of evaluations alone could fill the file.
    if (done && file_.bytes() > bytes_max_ / 8 * 7) {
      done = thin(true);
      gone += lines_gone_;
    }
  }
  // Of a few long lines the older half may have no second one.
  if (done && gone == 0) {
    const std::uint64_t from = before - std::min(before, bytes_max_ / 2);
    done = rewrite([from](std::uint64_t offset, std::string_view) { return offset >= from; });
    gone = lines_gone_;
  }
  if (!done) return done;
  const auto bytes = static_cast<std::int64_t>(before - std::min(before, file_.bytes()));
  note_dropped(path_, gone, bytes);
  log::info("event=lines_dropped file=\"{}\" lines={} bytes={} limit={}", path_.string(), gone,
            bytes, bytes_max_);
  return {};
}

Result<void> BoundedLines::thin(bool evaluations) {
  const std::uint64_t half = file_.bytes() / 2;
  bool odd = false;
  MetricsLine read;
  return rewrite([&](std::uint64_t offset, std::string_view line) {
    if (offset >= half) return true;
    if (!evaluations && read_metrics_line(line, read) && read.evaluation) return true;
    return odd = !odd;
  });
}

Result<void> BoundedLines::rewrite(const Keep& keep) {
  auto file = LineFile::open(path_);
  if (!file) return file.error();
  Replacement fresh(path_);
  bool written = true;
  lines_gone_ = 0;
  const auto read = file->read_lines({}, file->size() + kLineBytesMax,
                                     [&](std::uint64_t offset, std::string_view line) {
                                       if (!written) return;
                                       if (keep(offset, line))
                                         written = fresh.add(line);
                                       else
                                         ++lines_gone_;
                                     });
  if (!read) return read.error();
  if (!written) return fresh.error();
  if (const auto placed = fresh.place(); !placed) return placed;
  auto opened = AppendFile::open(path_);
  if (!opened) return opened.error();
  file_ = *std::move(opened);
  return {};
}

}  // namespace tandem::runs
