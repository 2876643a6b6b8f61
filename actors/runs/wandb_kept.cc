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

// The figures of an evaluation, as a text.
std::string figures_of(const JsonByKey& values) {
  std::string text;
  for (const auto& [key, value] : values)
    if (key.starts_with("val/")) text.append(key).append(1, '=').append(value).append(1, '\n');
  return text;
}

template <class Number>
Number number_in(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What history_field() has made of a row.
WandbRow row_of(std::string_view history) {
  WandbRow row;
  while (const auto field = take_field(history)) {
    std::string_view item = field->bytes;
    const auto key = field->number == 1 ? take_field(item) : std::nullopt;
    const auto value = key ? take_field(item) : std::nullopt;
    if (!value) continue;
    if (key->bytes == "_step")
      row.step = number_in<std::int64_t>(value->bytes);
    else if (key->bytes == "_runtime")
      row.runtime = number_in<double>(value->bytes);
    else if (key->bytes == "_timestamp")
      row.unix_seconds = number_in<double>(value->bytes);
    else
      (value->bytes.starts_with('{') ? row.tables : row.values)[std::string(key->bytes)] =
          value->bytes;
  }
  return row;
}

// As take_over(), without a copy of any text.
void absorb(WandbRow row, WandbRow& newest) {
  row.values.merge(newest.values);
  row.tables.merge(newest.tables);
  newest = std::move(row);
}

// The version of the evaluation that the row has, if any.
std::optional<std::int64_t> version_of(const WandbRow& row) {
  const auto found = row.values.find("val/step");
  if (found == row.values.end()) return std::nullopt;
  return number_in<std::int64_t>(found->second);
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
      const WandbRow row = row_of(read.message);
      sent.last_step = std::max(sent.last_step, row.step);
      if (const auto version = version_of(row)) sent.evaluated.insert(*version);
    }
  }
  return sent;
}

void KnownEvaluations::add(const MetricsLine& line) {
  texts_[line.step].push_back(figures_of(values_of(line)));
}

bool KnownEvaluations::differ(std::int64_t version, const JsonByKey& values) const {
  const auto known = texts_.find(version);
  return known != texts_.end() && std::ranges::count(known->second, figures_of(values)) == 0;
}

KeptRows::KeptRows(const fs::path& path, const KnownEvaluations& evaluations)
    : evaluations_(evaluations) {
  if (auto reader = WandbLogReader::open(path)) reader_ = std::move(*reader);
}

const WandbRow* KeptRows::row() {
  while (!row_ && reader_) {
    const auto record = reader_->next();
    const ReadRecord read = record ? read_record(*record) : ReadRecord{};
    if (!record || read.kind == ReadRecord::Kind::kExit) {
      reader_.reset();
    } else if (read.kind == ReadRecord::Kind::kHistory) {
      row_ = row_of(read.message);
      after_row_.bytes = reader_->end();
      after_row_.number = read.number;
    } else {  // goes with the row before it
      const bool kept = kept_.bytes == passed_.bytes;
      passed_.bytes = reader_->end();
      passed_.number = read.number;
      if (kept) keep_passed();
    }
  }
  return row_ ? &*row_ : nullptr;
}

bool KeptRows::pass() {
  const auto version = version_of(*row_);
  if (version && evaluations_.differ(*version, row_->values)) return false;
  if (version) passed_.rows.evaluated.insert(*version);
  passed_.rows.last_step = row_->step;
  passed_.bytes = after_row_.bytes;
  passed_.number = after_row_.number;
  absorb(*std::move(row_), passed_.newest);
  row_.reset();
  return true;
}

void KeptRows::keep_passed() {
  kept_.bytes = passed_.bytes;
  kept_.number = passed_.number;
  kept_.rows.last_step = std::max(kept_.rows.last_step, passed_.rows.last_step);
  kept_.rows.evaluated.merge(passed_.rows.evaluated);
  if (passed_.rows.last_step >= 0) absorb(std::move(passed_.newest), kept_.newest);
  passed_.newest = {};
  passed_.rows = {};
}

void KeptRows::differs() {
  reader_.reset();
  row_.reset();
  passed_ = KeptPart{.bytes = kept_.bytes, .number = kept_.number};
}

void KeptRows::take(const MetricsLine& line) {
  while (row() && row_->step < line.step)
    if (!pass()) return differs();
  if (!row_) return;
  const JsonByKey own = values_of(line);
  const bool same = row_->step == line.step && std::ranges::all_of(own, [this](const auto& item) {
                      const auto found = row_->values.find(item.first);
                      return found != row_->values.end() && found->second == item.second;
                    });
  if (!same || !pass()) return differs();
  keep_passed();
}

KeptPart KeptRows::end(std::int64_t end) {
  while (row() && row_->step < end)
    if (!pass()) differs();
  keep_passed();
  return std::move(kept_);
}

}  // namespace tandem::runs
