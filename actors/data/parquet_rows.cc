// The program reads the descriptor that is open here, so that the rows belong to the content whose
// digest names them, even if the path leads to another file by then.
#include "actors/data/parquet_rows.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/home_path.h"
#include "runtime/base/line_reader.h"
#include "runtime/base/text.h"
#include "runtime/node/program_output.h"

namespace tandem::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kCacheBytesMax = std::uint64_t{32} << 30;
// Part of each entry's name: rows of another form than this version's are not taken for its own.
constexpr const char* kRowsForm = "-1";

// The name of the rows of this content: its checksum and its length.
Result<std::string> name_of_content(const OpenFile& file, const fs::path& path) {
  Checksum64 checksum;
  std::vector<std::byte> piece(std::size_t{1} << 20);
  for (std::uint64_t at = 0;;) {
    const ssize_t got = ::pread(file.fd.get(), piece.data(), piece.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", path);
    if (got == 0) break;
    checksum.update(std::span(piece).first(static_cast<std::size_t>(got)));
    at += static_cast<std::uint64_t>(got);
  }
  const std::uint64_t value = checksum.value();
  return hex(std::as_bytes(std::span(&value, 1))) + "-" + std::to_string(file.bytes) + kRowsForm;
}

// Puts null in the place of NaN, Infinity and -Infinity, which stand outside strings.
void replace_special_numbers(std::string_view row, std::string& json) {
  json.clear();
  bool quoted = false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const char c = row[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\' && i + 1 < row.size()) {
      json.append(row, i, 2);
      ++i;
      continue;
    }
    const auto at = [&](std::string_view word) { return row.substr(i).starts_with(word); };
    const std::string_view word = quoted                        ? std::string_view()
                                  : c == 'N' && at("NaN")       ? "NaN"
                                  : c == 'I' && at("Infinity")  ? "Infinity"
                                  : c == '-' && at("-Infinity") ? "-Infinity"
                                                                : "";
    if (word.empty()) {
      json += c;
      continue;
    }
    json += "null";
    i += word.size() - 1;
  }
}

class ParquetRows final : public RecordSource {
 public:
  ParquetRows(fs::path path, std::uint64_t bytes, const ParquetFooter& footer)
      : path_(std::move(path)), bytes_(bytes), rows_(footer.rows) {
    has_floats_ = std::ranges::any_of(footer.leaves, [](const ParquetLeaf& leaf) {
      return leaf.kind == ParquetLeaf::Kind::kFloat;
    });
  }

  void read_entry(std::unique_ptr<ByteSource> rows, fs::path entry, std::size_t bytes_max) {
    lines_.emplace(std::move(rows), path_, bytes_max);
    entry_ = std::move(entry);
  }

  void read_program(std::unique_ptr<node::ProgramOutput> output, std::string name,
                    RowCacheWriter writer, std::size_t bytes_max) {
    program_ = output.get();
    program_name_ = std::move(name);
    writer_.emplace(std::move(writer));
    lines_.emplace(std::move(output), path_, bytes_max);
  }

  Result<std::optional<std::string_view>> next() override {
    const auto line = lines_->next();
    if (!line) return program_ ? of_program(line.error()) : of_entry(line.error());
    if (!program_) {
      given_ += line->has_value() ? 1 : 0;
      if (!*line && given_ != rows_) return of_entry(Error{.message = "rows are missing"});
      return line;
    }
    if (!*line) {
      if (given_ != rows_) return wrong("wrote " + std::to_string(given_) + " rows");
      if (auto kept = writer_->commit(); !kept) return kept.error();
      return line;
    }
    std::string_view row = **line;
    if (given_++ == rows_) return wrong("wrote more than that");
    if (!row.starts_with('{') || !row.ends_with('}'))
      return wrong("wrote as row " + std::to_string(given_) + ": " +
                   visible(cut_utf8(row, 80), Lines::kOne));
    if (has_floats_) {
      replace_special_numbers(row, json_);
      row = json_;
    }
    if (auto kept = writer_->add(row); !kept) return kept.error();
    return std::optional(row);
  }

  std::string_view place() const override {
    return place_.assign(path_.native()).append(":").append(std::to_string(given_));
  }

  // The share of rows that were given, in bytes of the file.
  std::uint64_t bytes_read() const override {
    const double share = rows_ == 0 ? 1 : static_cast<double>(given_) / static_cast<double>(rows_);
    return static_cast<std::uint64_t>(share * static_cast<double>(bytes_));
  }

 private:
  Error wrong(const std::string& what) const {
    return {ErrorCode::kFailed,
            "the parquet file has " + std::to_string(rows_) + " rows, and " + program_name_ + " " +
                what,
            path_.string(), "is this " + program_name_ + " another program of that name?"};
  }

  Error of_program(Error error) const {
    if (error.code == ErrorCode::kInvalid) return error;  // a line that is too long
    if (program_->exit_code() == kNoPyarrow) return no_parquet_program(path_);
    error.message = "cannot read the parquet file: " + error.message;
    error.where = path_.string();
    return error;
  }

  // Rows that cannot be read again are made anew: the file stays the one that counts.
  Error of_entry(const Error& error) const {
    std::error_code ignored;
    fs::remove(entry_, ignored);
    return {ErrorCode::kFailed,
            "the rows that were kept of the parquet file are damaged: " + error.message,
            entry_.string(), "they are removed now: start again"};
  }

  const fs::path path_;
  const std::uint64_t bytes_, rows_;
  bool has_floats_ = false;
  std::optional<LineReader> lines_;
  // Of one of the two ways to read.
  fs::path entry_;
  const node::ProgramOutput* program_ = nullptr;  // within lines_
  std::string program_name_;
  std::optional<RowCacheWriter> writer_;
  std::uint64_t given_ = 0;
  std::string json_;
  mutable std::string place_;
};

// The turn to make the rows of this file; see EntryTurn::take().
std::unique_ptr<EntryTurn> take_turn(const RowCache& cache, const std::string& name,
                                     const fs::path& path, const TellWait& tell) {
  return EntryTurn::take(cache, name, [&](pid_t other) {
    const std::string what = "waits for another process (" + std::to_string(other) +
                             ") that converts " + path.filename().string();
    if (tell) tell(what);
  });
}

}  // namespace

ParquetReading parquet_reading_here() {
  return {.programs = find_parquet_programs(),
          .cache = {.folder = state_folder() / "cache", .bytes_max = kCacheBytesMax},
          .silence_max = kParquetSilenceMax};
}

Result<std::unique_ptr<RecordSource>> parquet_rows(OpenFile file, const fs::path& path,
                                                   std::size_t record_bytes_max,
                                                   const ParquetReading& reading,
                                                   const TellWait& tell) {
  const auto footer = read_parquet_footer(file.fd, file.bytes, path);
  if (!footer) return footer.error();
  if (auto checked = check_columns(*footer, path); !checked) return checked.error();
  const auto name = name_of_content(file, path);
  if (!name) return name.error();
  auto rows = std::make_unique<ParquetRows>(path, file.bytes, *footer);
  auto kept = open_entry(reading.cache, *name);
  const auto program = parquet_program(reading.programs, *footer, reading.silence_max);
  if (!kept && !program) return no_parquet_program(path);
  std::unique_ptr<EntryTurn> turn;
  if (!kept) {
    turn = take_turn(reading.cache, *name, path, tell);
    kept = open_entry(reading.cache, *name);  // made meanwhile
  }
  if (kept) {
    rows->read_entry(std::move(kept), entry_path(reading.cache, *name), record_bytes_max);
    return std::unique_ptr<RecordSource>(std::move(rows));
  }
  auto writer = RowCacheWriter::begin(reading.cache, *name, std::move(turn));
  if (!writer) return writer.error();
  auto output = node::ProgramOutput::start(*program, file.fd);
  if (!output)
    return Error{output.error().code, "cannot read the parquet file: " + output.error().message,
                 path.string()};
  rows->read_program(*std::move(output), fs::path(program->argv.front()).filename(),
                     *std::move(writer), record_bytes_max);
  return std::unique_ptr<RecordSource>(std::move(rows));
}

}  // namespace tandem::data
