// A data file that somebody downloaded, or the README.md beside it: the first byte chooses.
// Checked: the records are the same at a second reading (RS-1), none is longer than its bound,
// those of a table or of an array are JSON on one line, scan_object() finds in each what
// parse_json() has, and an error names the file. Of a parquet file the footer alone is read here:
// its rows are a child program's task.
#include <fcntl.h>

#include "actors/data/json_fields.h"
#include "actors/data/open_records.h"
#include "actors/data/parquet_footer.h"
#include "actors/job/dataset.h"
#include "actors/job/dataset_card.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

constexpr const char* kNames[] = {"train.jsonl", "train.csv", "train.tsv", "train.csv.gz",
                                  "README.md"};
constexpr std::size_t kRecordMax = 1 << 16;
constexpr std::size_t kRecordsMax = 64;  // of a packed file, which may be far longer than an input

void check_fields(std::string_view record) {
  data::JsonField fields[] = {{.key = "prompt"}, {.key = "a.b"}, {.key = "messages"}};
  const nlohmann::json value = parse_json(record);
  using Type = nlohmann::json::value_t;
  const auto same = [](Type scanned, const nlohmann::json& parsed) {
    // -0 is number_unsigned to scan_object().
    return scanned == parsed.type() ||
           (scanned == Type::number_unsigned && parsed.is_number_integer());
  };
  CHECK(same(data::scan_object(record, fields), value));
  if (!value.is_object()) return;
  for (const data::JsonField& field : fields) {
    const nlohmann::json* const found = find_path(value, field.key);
    CHECK((field.type == Type::discarded) == (found == nullptr));
    CHECK(!found || same(field.type, *found));
    if (found && found->is_string()) CHECK(field.text == found->get<std::string>());
  }
}

struct Reading {
  std::vector<std::string> records;
  std::string error;
};

Reading read(const std::filesystem::path& path) {
  Reading reading;
  auto source = data::open_records(path, kRecordMax);
  if (!source) {
    CHECK(source.error().where.find(path.string()) != std::string::npos);
    return {{}, source.error().message};
  }
  while (reading.records.size() < kRecordsMax) {
    const auto record = (*source)->next();
    if (!record) {
      CHECK(!record.error().where.empty());
      reading.error = record.error().message;
      break;
    }
    if (!*record) break;
    CHECK((*record)->size() <= kRecordMax && !(*source)->place().empty());
    // What is no JSON stays as it is, for the one who reads the record to refuse.
    CHECK((*record)->find('\n') == std::string_view::npos || parse_json(**record).is_discarded());
    reading.records.emplace_back(**record);
  }
  return reading;
}

void read_card(const std::filesystem::path& folder) {
  for (const job::CardConfig& config : job::read_dataset_card(folder)) {
    CHECK(!config.splits.empty());
    for (const job::CardSplit& split : config.splits) CHECK(!split.patterns.empty());
  }
}

void read_footer(const std::filesystem::path& path, std::uint64_t bytes) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto footer = data::read_parquet_footer(fd, bytes, path);
  if (!footer) {
    CHECK(!footer.error().where.empty());
    return;
  }
  CHECK(footer->leaves.size() <= data::kSchemaElementsMax);
  for (const data::ParquetLeaf& leaf : footer->leaves) CHECK(!leaf.path.empty());
  (void)data::check_columns(*footer, path);
}

}  // namespace

void datasets(std::string_view input) {
  Pieces pieces(input);
  const auto path = scratch_folder() / kNames[pieces.byte() % std::size(kNames)];
  const std::string_view content = pieces.rest();
  CHECK(write_file(path, std::as_bytes(std::span(content))).has_value());
  if (path.filename() == "README.md") return read_card(path.parent_path());
  if (content.starts_with("PAR1")) return read_footer(path, content.size());
  const Reading first = read(path);
  const Reading second = read(path);
  CHECK(first.records == second.records && first.error == second.error);
  for (const std::string& record : first.records) check_fields(record);
  job::DatasetKeys keys;
  keys.chat = {.model = "/nowhere", .chosen = "qwen3"};
  std::size_t taken = 0;
  const auto whole = job::read_dataset(
      {path}, keys, job::RecordNeeds::kPrompt, [&](const job::Record& record) -> Result<void> {
        CHECK(!record.where.empty() && parse_json(record.json).is_object());
        if (++taken < kRecordsMax) return {};
        return Error{.message = "enough", .where = "here"};
      });
  CHECK(whole.has_value() || !whole.error().where.empty());
}

}  // namespace tandem::fuzz
