#include "actors/runs/wandb_kept.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "actors/runs/protobuf.h"
#include "actors/runs/wandb_records.h"
#include "runtime/base/file.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderBegin = "offline-run-";
constexpr std::size_t kTimeChars = 15;  // YYYYMMDD_HHMMSS
constexpr std::size_t kIdCharsMax = 64;

// The id in the name of a folder; empty where it is another's.
std::string id_of(const std::string& name) {
  const std::size_t begin = kFolderBegin.size() + kTimeChars + 1;
  if (!name.starts_with(kFolderBegin) || name.size() <= begin || name[begin - 1] != '-') return "";
  std::string id = name.substr(begin);
  const bool plain = std::ranges::all_of(
      id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  return plain && id.size() <= kIdCharsMax ? id : "";
}

// The whole number of an item of a history with this key.
std::optional<std::int64_t> number_of(std::string_view history, std::string_view key) {
  while (const auto field = take_field(history)) {
    std::string_view item = field->bytes;
    const auto name = field->number == 1 ? take_field(item) : std::nullopt;
    if (!name || name->bytes != key) continue;
    const auto value = take_field(item);
    std::int64_t number = 0;
    if (value &&
        std::from_chars(value->bytes.data(), value->bytes.data() + value->bytes.size(), number)
                .ec == std::errc{})
      return number;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<WandbFile>> wandb_files(const fs::path& run_dir) {
  std::vector<WandbFile> files;
  const fs::path folder = run_dir / "wandb";
  std::error_code failure;
  if (!fs::exists(folder, failure)) return files;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    WandbFile file{.folder = entry->path(), .id = id_of(entry->path().filename().string())};
    std::error_code ignored;
    if (file.id.empty() || !fs::exists(file.path(), ignored)) continue;
    file.closed =
        fs::exists(file.path().string() + ".synced", ignored) || !WandbLogReader::open(file.path());
    files.push_back(std::move(file));
  }
  if (failure)
    return Error{
        ErrorCode::kFailed, "cannot list the folder: " + failure.message(), folder.string(), {}};
  std::ranges::sort(files, {}, &WandbFile::folder);
  return files;
}

SentRows sent_rows(const std::vector<WandbFile>& files) {
  SentRows sent;
  for (const WandbFile& file : files) {
    auto reader = file.closed ? WandbLogReader::open(file.path()) : Error{};
    if (!reader) continue;
    while (const auto record = reader->next()) {
      const ReadRecord read = read_record(*record);
      if (read.kind != ReadRecord::Kind::kHistory) continue;
      sent.last_step = std::max(sent.last_step, number_of(read.message, "_step").value_or(-1));
      if (const auto version = number_of(read.message, "val/step")) sent.evaluated.insert(*version);
    }
  }
  return sent;
}

KeptRows::KeptRows(const fs::path& file) {
  cut_.bytes = kWandbHeader.size();
  if (file.empty()) return;
  if (auto reader = WandbLogReader::open(file)) reader_ = std::move(*reader);
}

// Reads to the next row, over records that are no rows; false where none is.
bool KeptRows::read_on() {
  while (reader_) {
    auto record = reader_->next();
    if (!record) break;
    const ReadRecord read = read_record(*record);
    if (read.kind == ReadRecord::Kind::kExit) break;
    if (read.kind == ReadRecord::Kind::kHistory) {
      row_ = std::move(record);
      return true;
    }
    cut_ = {reader_->end(), read.number};
  }
  reader_.reset();
  return false;
}

bool KeptRows::next_is(std::string_view begin) {
  if (!reader_ || !read_on()) return false;
  const ReadRecord row = read_record(*row_);
  if (!row.message.starts_with(begin)) {
    reader_.reset();
    return false;
  }
  cut_ = {reader_->end(), row.number};
  return true;
}

KeptRows::Cut KeptRows::cut() {
  read_on();
  reader_.reset();
  return cut_;
}

}  // namespace tandem::runs
