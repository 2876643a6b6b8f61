#include "actors/runs/wandb_records.h"

#include <charconv>

#include "actors/runs/protobuf.h"
#include "runtime/base/json.h"

namespace tandem::runs {
namespace {

// Numbers of the fields of a Record.
enum RecordField : std::uint64_t {
  kNumber = 1,
  kHistory = 2,
  kSummary = 3,
  kConfig = 5,
  kFiles = 6,
  kMetric = 12,
  kRun = 17,
  kExit = 18,
  kHeader = 21,
  kEnvironment = 26,
};

std::string in_field(std::uint64_t field, std::string_view message) {
  std::string text;
  append_bytes(text, field, message);
  return text;
}

void append_text(std::string& to, std::uint64_t field, std::string_view text) {
  if (!text.empty()) append_bytes(to, field, text);
}

void append_timestamp(std::string& to, std::uint64_t field, std::int64_t unix_ms) {
  std::string timestamp;
  append_integer(timestamp, 1, unix_ms / 1000);
  append_integer(timestamp, 2, unix_ms % 1000 * 1'000'000);
  append_bytes(to, field, timestamp);
}

// A key of the history is one word of `nested_key`, so that its points and slashes mean nothing.
enum class KeyField : std::uint64_t { kKey = 1, kNested = 2 };

void append_item(std::string& to, KeyField field, std::string_view key, std::string_view value) {
  std::string item;
  append_bytes(item, static_cast<std::uint64_t>(field), key);
  append_bytes(item, 16, value);
  append_bytes(to, 1, item);
}

std::string config_message(const WandbRun& run) {
  std::string config;
  const auto keys = parse_json(run.config);
  if (!keys.is_object()) return config;
  for (const auto& [key, value] : keys.items())
    append_item(config, KeyField::kKey, key, dump_json(value));
  return config;
}

std::string metric_field(std::uint64_t name_field, std::string_view name,
                         std::string_view step_metric, std::uint64_t option) {
  std::string metric, options;
  append_bytes(metric, name_field, name);
  append_text(metric, 4, step_metric);
  append_integer(options, option, 1);
  append_integer(options, 3, 1);
  append_bytes(metric, 6, options);
  return in_field(kMetric, metric);
}

}  // namespace

std::string numbered(std::int64_t number, std::string_view field) {
  std::string record;
  append_integer(record, kNumber, number);
  record += field;
  return record;
}

std::string header_field() {
  std::string version;
  append_bytes(version, 1, "tandem " TANDEM_VERSION);
  append_bytes(version, 2, "0.70.0");  // the oldest wandb that reads such files
  return in_field(kHeader, in_field(1, version));
}

std::string run_field(const WandbRun& run, const WandbStart& start) {
  std::string message;
  append_bytes(message, 1, start.id);
  append_text(message, 2, run.entity);
  append_text(message, 3, run.project);
  append_bytes(message, 4, config_message(run));
  append_text(message, 6, run.group);
  append_text(message, 8, run.name);
  append_text(message, 9, run.notes);
  for (const std::string& tag : run.tags) append_bytes(message, 10, tag);
  append_text(message, 13, start.host);
  append_timestamp(message, 17, start.started_ms);
  if (start.resume) append_integer(message, 24, 1);
  return in_field(kRun, message);
}

std::string environment_field(const WandbStart& start) {
  std::string message;
  append_bytes(message, 1, "Linux");
  append_timestamp(message, 3, start.started_ms);
  append_bytes(message, 6, "tandem");
  append_text(message, 11, start.root);
  append_text(message, 12, start.host);
  return in_field(kEnvironment, message);
}

std::string config_field(const WandbRun& run) { return in_field(kConfig, config_message(run)); }

std::vector<std::string> metric_fields() {
  constexpr std::uint64_t kName = 1, kGlob = 2, kStepSync = 1, kHidden = 2;
  return {metric_field(kName, "val/step", "", kHidden),
          metric_field(kGlob, "val/*", "val/step", kStepSync)};
}

std::string json_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

JsonByKey values_of(const MetricsLine& line) {
  JsonByKey values;
  for (const auto& [key, value] : line.values) values[key] = json_number(value);
  if (line.evaluation) values["val/step"] = std::to_string(line.step);
  return values;
}

namespace {

// A history and a summary have the same items.
std::string items_of(const WandbRow& row) {
  std::string message;
  for (const auto& [key, value] : row.values) append_item(message, KeyField::kNested, key, value);
  append_item(message, KeyField::kNested, "_step", std::to_string(row.step));
  append_item(message, KeyField::kNested, "_runtime", json_number(row.runtime));
  append_item(message, KeyField::kNested, "_timestamp", json_number(row.unix_seconds));
  for (const auto& [key, value] : row.tables) append_item(message, KeyField::kNested, key, value);
  return message;
}

}  // namespace

void take_over(const WandbRow& row, WandbRow& newest) {
  for (const auto& [key, value] : row.values) newest.values[key] = value;
  for (const auto& [key, value] : row.tables) newest.tables[key] = value;
  newest.step = row.step;
  newest.runtime = row.runtime;
  newest.unix_seconds = row.unix_seconds;
}

std::string history_field(const WandbRow& row) {
  std::string message = items_of(row), step;
  append_integer(step, 1, row.step);
  append_bytes(message, 2, step);
  return in_field(kHistory, message);
}

std::string summary_field(const WandbRow& row) { return in_field(kSummary, items_of(row)); }

std::string files_field(const std::string& path) {
  return in_field(kFiles, in_field(1, in_field(1, path)));
}

std::string exit_field(int code, double runtime) {
  std::string message;
  append_integer(message, 1, code);
  append_integer(message, 2, static_cast<std::int64_t>(runtime));
  return in_field(kExit, message);
}

ReadRecord read_record(std::string_view record) {
  ReadRecord read;
  while (const auto field = take_field(record)) {
    if (field->number == kNumber) read.number = static_cast<std::int64_t>(field->integer);
    if (field->number == kHistory) read.kind = ReadRecord::Kind::kHistory;
    if (field->number == kExit) read.kind = ReadRecord::Kind::kExit;
    if (field->number == kHistory || field->number == kExit) read.message = field->bytes;
  }
  return read;
}

}  // namespace tandem::runs
