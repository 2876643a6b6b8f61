// A frame's head is six numbers of 8 bytes, the lowest byte first: what it is (kJob, kBatch or
// kLast), the number of the part within its batch, the step, the size and the checksum of the body,
// and the checksum of these five. A reader goes from head to head; it needs the bodies only of
// batches that it is asked for. A head that is not whole ends a file: nothing behind it can be
// found.
#include "actors/runs/batch_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "actors/runs/packed.h"
#include "runtime/base/digest.h"
#include "runtime/base/log.h"
#include "runtime/wire/codec.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "TANDEMB1";
constexpr std::string_view kPrefix = "batches-", kSuffix = ".log";
constexpr std::uint64_t kBodyBytesMax = kUnpackedMax;
constexpr const char* kHelp = "is the disk full?";

enum Kind : std::uint64_t { kJob = 1, kBatch = 2, kLast = 3 };  // kLast: a batch's last part

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Head {
  std::uint64_t kind = 0, part = 0;
  std::int64_t step = 0;
  std::uint64_t bytes = 0, checksum = 0;
};

void add_number(std::string& text, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(number >> shift & 0xff);
}

std::uint64_t number_at(std::string_view text, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(text[at * 8 + i]);
  return number;
}

// The frame of a body, which is packed here.
std::string frame_of(Head head, std::string body) {
  body = packed(std::move(body));
  std::string frame;
  for (const std::uint64_t number :
       {head.kind, head.part, static_cast<std::uint64_t>(head.step),
        static_cast<std::uint64_t>(body.size()), checksum64(bytes_of(body))})
    add_number(frame, number);
  add_number(frame, checksum64(bytes_of(frame)));
  return frame + body;
}

// The head, or nothing where its checksum says that it is none.
std::optional<Head> head_of(std::string_view text) {
  if (text.size() != kHeadBytes) return {};
  if (number_at(text, 5) != checksum64(bytes_of(text.substr(0, 40)))) return {};
  return Head{.kind = number_at(text, 0),
              .part = number_at(text, 1),
              .step = static_cast<std::int64_t>(number_at(text, 2)),
              .bytes = number_at(text, 3),
              .checksum = number_at(text, 4)};
}

std::string name_of(std::uint64_t number) {
  char name[64];
  std::snprintf(name, sizeof name, "batches-%06llu.log", static_cast<unsigned long long>(number));
  return name;
}

// The number of a file of the record; nullopt for any other name.
std::optional<std::uint64_t> number_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return {};
  const std::string digits =
      name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  if (digits.empty() || digits.size() > 18) return {};
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return {};
  return std::stoull(digits);
}

// The record's files by number.
Result<std::map<std::uint64_t, fs::path>> files_in(const fs::path& folder) {
  std::map<std::uint64_t, fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (const auto number = number_of(at->path().filename().string()))
      files.emplace(*number, at->path());
  if (!failed) return files;
  const bool absent = failed == std::errc::no_such_file_or_directory;
  return Error{absent ? ErrorCode::kNotFound : ErrorCode::kFailed,
               "cannot read the recorded batches: " + failed.message(), folder.string(), ""};
}

// Up to `bytes` from `offset`; fewer at the end of the file.
Result<std::string> read_at(const OwnedFd& fd, const fs::path& path, std::uint64_t offset,
                            std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t read =
        ::pread(fd.get(), text.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return file_error("read", path);
    if (read == 0) break;
    got += static_cast<std::size_t>(read);
  }
  text.resize(got);
  return text;
}

template <class T>
Result<T> decode_body(std::string body) {
  auto content = unpacked(std::move(body));
  if (!content) return content.error();
  return wire::decode<T>(
      *content, {.message_bytes_max = kUnpackedMax, .decoded_bytes_max = 2 * kUnpackedMax});
}

std::string place_text(const fs::path& file, std::uint64_t offset) {
  return file.string() + ", byte " + std::to_string(offset);
}

std::string step_text(StepId step) { return "step " + std::to_string(step.value + 1); }

}  // namespace

fs::path batch_log_folder(const fs::path& run_dir) { return run_dir / "replay"; }

BatchLogWriter::BatchLogWriter(fs::path folder, RecordedJob job, const BatchLogLimits& limits)
    : folder_(std::move(folder)), job_(std::move(job)), limits_(limits) {
  limits_.file_bytes = std::min(limits.file_bytes, limits.bytes / 4);
}

Result<BatchLogWriter> BatchLogWriter::open(const fs::path& run_dir, RecordedJob job,
                                            const BatchLogLimits& limits) {
  BatchLogWriter writer(batch_log_folder(run_dir), std::move(job), limits);
  std::error_code failed;
  fs::create_directories(writer.folder_, failed);
  if (failed)
    return Error{ErrorCode::kFailed, "cannot make the folder of batches: " + failed.message(),
                 writer.folder_.string(), kHelp};
  const auto files = files_in(writer.folder_);
  if (!files) return files.error();
  // Without these, which a file of another version does not give, all goes on.
  const auto reader = BatchLogReader::open(run_dir);
  const auto first_steps = reader ? reader->first_steps() : std::map<fs::path, StepId>();
  for (const auto& [number, path] : *files) {
    const std::uint64_t bytes = fs::file_size(path, failed);
    Former& former = writer.former_[number];
    former.bytes = failed ? 0 : bytes;
    if (const auto first = first_steps.find(path); first != first_steps.end())
      former.first = first->second;
    writer.former_bytes_ += former.bytes;
    writer.number_ = number;
  }
  if (auto begun = writer.begin_file(); !begun) return begun.error();
  return writer;
}

Result<void> BatchLogWriter::begin_file() {
  if (auto synced = sync(); !synced) return synced;  // the later ones are of the new file alone
  if (end_ > 0) former_[number_] = {end_, std::exchange(first_, std::nullopt)};
  former_bytes_ += end_;
  begin_ = end_ = 0;
  make_room();
  path_ = folder_ / name_of(++number_);
  fd_ = OwnedFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!fd_) return file_error("make the file of batches", path_);
  auto begun = append(std::string(kFormat) + frame_of({.kind = kJob}, wire::encode(job_)));
  begin_ = end_;
  return begun;
}

// Removes the oldest files until the next one has room. One that cannot be removed is no longer
// counted, so that the others are not removed for it.
void BatchLogWriter::make_room() {
  while (!former_.empty() && former_bytes_ + limits_.file_bytes > limits_.bytes) {
    const auto oldest = former_.begin();
    std::error_code failed;
    fs::remove(folder_ / name_of(oldest->first), failed);
    if (failed)
      log::warn("event=batches_left file=\"{}\" message=\"{}\"",
                (folder_ / name_of(oldest->first)).string(), failed.message());
    former_bytes_ -= oldest->second.bytes;
    former_.erase(oldest);
    if (!std::exchange(said_full_, true))
      log::warn(
          "event=replay_full folder=\"{}\" bytes={} message=\"it has the most that it may "
          "(retention.replay_bytes): the oldest batches go, and a replay begins with a "
          "checkpoint behind them\"",
          folder_.string(), limits_.bytes);
  }
}

// After an Error the file ends as before, or is given up. Parts of the batch that were written may
// stay behind: without the last part they are no batch (BL-2).
Result<void> BatchLogWriter::append(const std::string& frame) {
  if (write_all(fd_.get(), std::as_bytes(std::span(frame)))) {
    end_ += frame.size();
    return {};
  }
  Error error = file_error("write the batch", path_);
  error.help = kHelp;
  if (end_ == 0 || ::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) fd_ = {};
  return error;
}

Result<void> BatchLogWriter::keep(const messages::TrainStep& step,
                                  const std::vector<std::string>& payloads) {
  CHECK(step.groups.size() == payloads.size());
  if (!fd_ || end_ - begin_ >= limits_.file_bytes)
    if (auto begun = begin_file(); !begun) return begun;
  std::size_t next = 0;
  std::uint64_t part = 0;
  do {
    RecordedBatch one{.step = {.step = step.step, .publish = step.publish, .retain = step.retain}};
    std::size_t bytes = 0;
    while (next < payloads.size() &&
           (bytes == 0 || bytes + payloads[next].size() < kBatchPartBytes)) {
      bytes += payloads[next].size();
      one.step.groups.push_back(step.groups[next]);
      one.payloads.push_back(payloads[next]);
      ++next;
    }
    std::string body = wire::encode(one);
    if (body.size() > kBodyBytesMax)
      return Error{ErrorCode::kInvalid,
                   "a group is too large to be recorded: " + std::to_string(body.size()) + " bytes",
                   path_.string(), "`record: none`"};
    const Head head{
        .kind = next == payloads.size() ? kLast : kBatch, .part = part++, .step = step.step.value};
    if (auto appended = append(frame_of(head, std::move(body))); !appended) return appended;
  } while (next < payloads.size());
  first_ = std::min(first_.value_or(step.step), step.step);
  return {};
}

std::optional<StepId> BatchLogWriter::first_after_gone() const {
  const std::uint64_t oldest = former_.empty() ? number_ : former_.begin()->first;
  if (oldest == 1) return std::nullopt;
  std::optional<StepId> first = first_;
  for (const auto& [number, former] : former_)
    if (former.first) first = std::min(first.value_or(*former.first), *former.first);
  return first;
}

Result<void> BatchLogWriter::sync() {
  if (!fd_) return {};
  if (::fdatasync(fd_.get()) != 0) return file_error("sync the batches", path_);
  return sync_directory(folder_);
}

Result<BatchLogReader> BatchLogReader::open(const fs::path& run_dir) {
  const auto files = files_in(batch_log_folder(run_dir));
  if (!files) return files.error();
  BatchLogReader reader;
  for (const auto& [number, path] : *files)
    if (auto scanned = reader.scan(path); !scanned) return scanned.error();
  return reader;
}

Result<void> BatchLogReader::scan(const fs::path& file) {
  const auto opened = open_regular(file);
  std::error_code failed;
  if (!opened && !fs::exists(file, failed)) return {};  // it has gone since it was listed
  if (!opened) return opened.error();
  bytes_ += opened->bytes;
  const auto format = read_at(opened->fd, file, 0, kFormat.size());
  if (!format) return format.error();
  std::uint64_t at = kFormat.size();
  std::vector<Frame> parts;  // of the batch that is being read
  if (format->size() == kFormat.size() && *format != kFormat)
    return Error{ErrorCode::kInvalid, "this is no file of batches of this version of tandem",
                 file.string(), "replay the run with the version that recorded it"};
  while (at < opened->bytes) {
    const auto text = read_at(opened->fd, file, at, kHeadBytes);
    if (!text) return text.error();
    const auto head = head_of(*text);
    const std::uint64_t body = at + kHeadBytes;
    if (head && head->kind != kJob && !jobs_.contains(file)) break;  // by which job is not known
    if (!head || head->bytes > kBodyBytesMax || body + head->bytes > opened->bytes) break;
    at = body + head->bytes;
    const Frame frame{.offset = body, .bytes = head->bytes, .checksum = head->checksum};
    if (head->kind == kJob) {
      auto content = read_at(opened->fd, file, frame.offset, frame.bytes);
      if (!content) return content.error();
      auto job = decode_body<RecordedJob>(*std::move(content));
      if (!job) return Error{ErrorCode::kInvalid, job.error().message, place_text(file, body), ""};
      jobs_.insert_or_assign(file, *std::move(job));
      continue;
    }
    if (head->part != parts.size()) parts.clear();  // a batch whose end was never written
    if (head->part != parts.size()) continue;
    parts.push_back(frame);
    if (head->kind != kLast) continue;
    batches_.insert_or_assign(StepId{head->step}, Place{file, std::exchange(parts, {})});
  }
  if (at < opened->bytes) torn_.push_back(place_text(file, at));
  return {};
}

std::map<fs::path, StepId> BatchLogReader::first_steps() const {
  std::map<fs::path, StepId> first;
  for (const auto& [step, place] : batches_) first.try_emplace(place.file, step);
  return first;
}

std::optional<StepId> BatchLogReader::first() const {
  return batches_.empty() ? std::nullopt : std::optional(batches_.begin()->first);
}

const RecordedJob* BatchLogReader::job_of(StepId step) const {
  const auto place = batches_.find(step);
  if (place == batches_.end()) return nullptr;
  const auto job = jobs_.find(place->second.file);
  return job == jobs_.end() ? nullptr : &job->second;
}

Result<RecordedBatch> BatchLogReader::read(StepId step) const {
  const auto found = batches_.find(step);
  if (found == batches_.end()) {
    std::string why = "the batch of " + step_text(step) + " is not recorded";
    for (const std::string& place : torn_) why += "; a file cannot be read on: " + place;
    return Error{ErrorCode::kNotFound, why, "", ""};
  }
  const Place& place = found->second;
  const auto opened = open_regular(place.file);
  std::error_code failed;
  if (!opened && !fs::exists(place.file, failed))
    return Error{ErrorCode::kNotFound,
                 "the batch of " + step_text(step) + " is no longer recorded: its file has gone",
                 place.file.string(), "begin with a later checkpoint (--from-step)"};
  if (!opened) return opened.error();
  RecordedBatch batch;
  for (const Frame& frame : place.parts) {
    auto body = read_at(opened->fd, place.file, frame.offset, frame.bytes);
    if (!body) return body.error();
    const auto damaged = [&](const std::string& how) {
      return Error{ErrorCode::kInvalid,
                   "the recorded batch of " + step_text(step) + " is damaged: " + how,
                   place_text(place.file, frame.offset), "restore the file"};
    };
    if (checksum64(bytes_of(*body)) != frame.checksum) return damaged("its checksum is another");
    auto part = decode_body<RecordedBatch>(*std::move(body));
    if (!part) return damaged(part.error().message);
    auto groups = std::move(batch.step.groups);
    std::ranges::move(part->step.groups, std::back_inserter(groups));
    std::ranges::move(part->payloads, std::back_inserter(batch.payloads));
    batch.step = std::move(part->step);
    batch.step.groups = std::move(groups);
  }
  if (batch.step.groups.size() != batch.payloads.size())
    return Error{ErrorCode::kInvalid, "the recorded batch of " + step_text(step) + " is damaged",
                 place.file.string(), "restore the file"};
  return batch;
}

}  // namespace tandem::runs
