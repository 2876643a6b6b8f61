// An event is laid out as wall time, step, and then its summary or session log, so that all bytes
// after the first nine say what TensorBoard shows. The events of an earlier incarnation are
// compared with metrics.jsonl in these bytes, which needs no decoder: each line has its own time
// and clock values, so a step that was trained anew differs from the step that it replaces.
#include "actors/runs/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "actors/runs/protobuf.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/line_file.h"
#include "runtime/node/resources.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNameBegin = "events.out.tfevents.";
constexpr std::size_t kSecondsDigits = 10;          // digits in a name: enough up to the year 2286
constexpr std::size_t kHostCharsMax = 64;           // characters in a name
constexpr std::size_t kRecordBytesMax = 16u << 20;  // a line of kLineBytesMax makes less
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;  // how much history is written at a time

std::string wall_time_field(double unix_seconds) {
  std::string field;
  append_double(field, 1, unix_seconds);
  return field;
}
constexpr std::size_t kWallTimeBytes = 9;

std::string step_field(std::int64_t step) {
  std::string field;
  append_integer(field, 2, step);
  return field;
}

// An event without its wall time.
std::string scalars_of(const MetricsLine& line) {
  std::string summary, scalar;
  for (const auto& [tag, value] : line.values) {
    if (!(std::abs(value) <= std::numeric_limits<float>::max())) continue;
    scalar.clear();
    append_bytes(scalar, 1, tag);
    append_float(scalar, 2, static_cast<float>(value));
    append_bytes(summary, 1, scalar);
  }
  std::string event = step_field(line.step);
  append_bytes(event, 5, summary);
  return event;
}

std::string session_start(std::int64_t step) {
  std::string status, event = step_field(step);
  append_integer(status, 1, 1);
  append_bytes(event, 7, status);
  return event;
}

std::uint32_t masked_crc(std::string_view data) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(data)));
  return std::rotr(crc, 15) + 0xa282ead8u;
}

void append_record(std::string& to, std::string_view data) {
  std::string length;
  append_little_endian(length, std::uint64_t{data.size()});
  to += length;
  append_little_endian(to, masked_crc(length));
  to += data;
  append_little_endian(to, masked_crc(data));
}

// nullopt where the file ends, or is damaged: TensorBoard reads no further either.
std::optional<std::string> next_record(std::ifstream& file) {
  std::string head(12, '\0'), data, check(4, '\0');
  if (!file.read(head.data(), 12)) return std::nullopt;
  const std::string_view length = std::string_view(head).substr(0, 8);
  if (little_endian(std::string_view(head).substr(8)) != masked_crc(length)) return std::nullopt;
  const std::uint64_t bytes = little_endian(length);
  if (bytes > kRecordBytesMax) return std::nullopt;
  data.resize(bytes);
  if (!file.read(data.data(), static_cast<std::streamsize>(bytes))) return std::nullopt;
  if (!file.read(check.data(), 4) || little_endian(check) != masked_crc(data)) return std::nullopt;
  return data;
}

struct OwnEvent {
  std::int64_t step = 0;
  bool is_start = false;
  std::string_view body;  // all but the wall time
};

// nullopt for the file's version, and for an event that another program has written.
std::optional<OwnEvent> own_event(std::string_view data) {
  if (data.size() < kWallTimeBytes + 2 || data[0] != '\x09' || data[kWallTimeBytes] != '\x10')
    return std::nullopt;
  OwnEvent event{.body = data.substr(kWallTimeBytes)};
  std::string_view rest = event.body;
  const auto step = take_field(rest);
  if (!step) return std::nullopt;
  event.step = static_cast<std::int64_t>(step->integer);
  event.is_start = event.body == session_start(event.step);
  return event;
}

// An event that TensorBoard shows, by its body.
struct Shown {
  std::int64_t step = 0;
  std::uint64_t digest = 0;
};

std::uint64_t digest_of(std::string_view body) {
  return checksum64(std::as_bytes(std::span(body)));
}

// Brings `shown`, what TensorBoard shows of steps below `end`, to the state after it has read
// `file` as well.
void look_through(const fs::path& path, std::int64_t end, std::vector<Shown>& shown) {
  if (!refuse_irregular(path)) return;
  std::ifstream file(path, std::ios::binary);
  while (const auto data = next_record(file)) {
    const auto event = own_event(*data);
    if (!event || event->step >= end) continue;
    if (event->is_start)
      std::erase_if(shown, [&](const Shown& one) { return one.step >= event->step; });
    else
      shown.push_back({event->step, digest_of(event->body)});
  }
}

// The files in the order in which TensorBoard reads them.
Result<std::vector<fs::path>> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure))
    if (entry->path().filename().string().find("tfevents") != std::string::npos)
      files.push_back(entry->path());
  if (failure)
    return Error{
        ErrorCode::kFailed, "cannot list the folder: " + failure.message(), folder.string(), {}};
  std::sort(files.begin(), files.end());
  return files;
}

// 0 where the name has none.
std::int64_t seconds_of(const fs::path& file) {
  const std::string name = file.filename().string();
  std::int64_t seconds = 0;
  if (!name.starts_with(kNameBegin) || name.size() < kNameBegin.size() + kSecondsDigits) return 0;
  const char* const begin = name.data() + kNameBegin.size();
  const char* const end = begin + kSecondsDigits;
  return std::from_chars(begin, end, seconds).ptr == end ? seconds : 0;
}

std::string name_of(std::int64_t seconds) {
  std::string digits = std::to_string(seconds);
  if (digits.size() < kSecondsDigits) digits.insert(0, kSecondsDigits - digits.size(), '0');
  std::string host = node::hostname().substr(0, kHostCharsMax);
  for (char& c : host) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || (!std::isalnum(byte) && c != '-' && c != '.')) c = '-';
  }
  return std::string(kNameBegin) + digits + "." + host + "." + std::to_string(::getpid()) + ".0";
}

}  // namespace

Result<void> TensorboardWriter::add(std::string_view metrics_line) {
  if (!read_metrics_line(metrics_line, line_) || line_.step < 0) return {};
  if (!file_.is_open())
    if (const auto begun = begin(); !begun) return begun;
  std::string records;
  append_record(records, wall_time_field(now()) + scalars_of(line_));
  return write(records);
}

double TensorboardWriter::now() const { return static_cast<double>(clock_()) / 1000; }

Result<void> TensorboardWriter::begin() {
  const fs::path folder = run_dir_ / "tensorboard";
  std::error_code failure;
  fs::create_directory(folder, failure);
  if (failure)
    return Error{
        ErrorCode::kFailed, "cannot make the folder: " + failure.message(), folder.string(), {}};
  const auto earlier = event_files(folder);
  if (!earlier) return earlier.error();
  const auto former = compare(*earlier);
  if (!former) return former.error();
  if (const auto begun = begin_file(*earlier); !begun) return begun;
  if (!earlier->empty()) {
    std::string start;
    append_record(start, wall_time_field(now()) + session_start(former->forgotten_from));
    if (const auto written = write(start); !written) return written;
  }
  return write_history(*former);
}

Result<void> TensorboardWriter::begin_file(const std::vector<fs::path>& earlier) {
  std::int64_t seconds = clock_() / 1000;
  for (const fs::path& file : earlier) seconds = std::max(seconds, seconds_of(file) + 1);
  path_ = run_dir_ / "tensorboard" / name_of(seconds);
  if (!earlier.empty() && path_ <= earlier.back())
    return Error{ErrorCode::kFailed, "no name of a new file sorts after the one that is there",
                 earlier.back().string(), "move that file away"};
  file_.open(path_, std::ios::binary | std::ios::app);
  std::string version = wall_time_field(now()), records;
  append_bytes(version, 3, "brain.Event:2");
  append_record(records, version);
  return write(records);
}

// An incarnation replaces all lines behind its checkpoint, and begins its file with what earlier
// files lack: if an event agrees with metrics.jsonl, all before it do, also those of lines that
// have gone since. Those behind the last that agrees stay as well, unless metrics.jsonl has another
// line of one of their steps.
Result<TensorboardWriter::Former> TensorboardWriter::compare(
    const std::vector<fs::path>& earlier) const {
  Former former{.end = line_.step};
  if (line_.evaluation) {  // which may be of an older version than the steps before it
    const auto read =
        each_line([&](const MetricsLine& line) { former.end = std::max(former.end, line.step); });
    if (!read) return read.error();
    ++former.end;
  }
  std::vector<Shown> shown;
  for (const fs::path& file : earlier) look_through(file, former.end, shown);
  if (shown.empty()) return former;
  std::vector<std::pair<std::uint64_t, std::size_t>> places;  // in `shown`, by digests
  for (std::size_t i = 0; i < shown.size(); ++i) places.emplace_back(shown[i].digest, i);
  std::ranges::sort(places);
  std::size_t agreed = 0;            // events
  std::set<std::int64_t> not_shown;  // steps
  const auto read = each_line([&](const MetricsLine& line) {
    if (line.step >= former.end) return;
    const std::uint64_t digest = digest_of(scalars_of(line));
    const auto at = std::ranges::lower_bound(places, std::pair(digest, std::size_t{0}));
    if (at != places.end() && at->first == digest)
      agreed = std::max(agreed, at->second + 1);
    else
      not_shown.insert(line.step);
  });
  if (!read) return read.error();
  former.forgotten_from = former.end;
  const std::span<const Shown> rest = std::span(shown).subspan(agreed);
  if (std::ranges::any_of(rest, [&](const Shown& one) { return not_shown.contains(one.step); }))
    former.forgotten_from = std::ranges::min_element(rest, {}, &Shown::step)->step;
  std::int64_t newest = -1;
  for (const Shown& one : shown) {
    if (one.step >= former.forgotten_from) continue;
    former.shown.push_back(one.digest);
    newest = std::max(newest, one.step);
  }
  former.forgotten_from = newest + 1;
  former.all_shown = not_shown.empty();
  std::ranges::sort(former.shown);
  return former;
}

Result<void> TensorboardWriter::write_history(const Former& former) {
  if (former.all_shown) return {};
  const double written_at = now();
  std::string records;
  Result<void> written;
  const auto read = each_line([&](const MetricsLine& line) {
    if (line.step >= former.end || !written) return;
    const std::string scalars = scalars_of(line);
    if (!former.shown.empty() && std::ranges::binary_search(former.shown, digest_of(scalars)))
      return;
    append_record(records, wall_time_field(time_of(line, line_, written_at)) + scalars);
    if (records.size() >= kWriteBytes) written = write(records);
  });
  if (!read) return read;
  return written ? write(records) : written;
}

// Leaves `records` empty.
Result<void> TensorboardWriter::write(std::string& records) {
  file_ << records;
  file_.flush();
  records.clear();
  if (file_) return {};
  return Error{ErrorCode::kFailed, "cannot write the file: " + errno_text(errno), path_.string(),
               "is the disk full, or the folder not writable?"};
}

Result<void> TensorboardWriter::each_line(const TakeLine& take) const {
  auto file = LineFile::open(run_dir_ / "metrics.jsonl");
  if (!file) {
    if (file.error().code == ErrorCode::kNotFound) return {};
    return file.error();
  }
  MetricsLine line;
  const auto read = file->read_lines({}, file->size(), [&](std::uint64_t, std::string_view text) {
    if (!read_metrics_line(text, line) || line.step < 0) return;
    const bool current = line.evaluation && line_.evaluation && line.step == line_.step;
    if (!current) take(line);
  });
  if (!read) return read.error();
  return {};
}

}  // namespace tandem::runs
