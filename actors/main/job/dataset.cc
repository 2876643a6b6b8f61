#include "actors/main/job/dataset.h"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "actors/main/job/foreign_input.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr std::uint32_t kHeldOutShare = 10;  // one in so many warm-start records

Error bad_line(const std::string& where, std::string message, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), where, std::move(help)};
}

const char* type_help(const json& value) { return value.is_null() ? "null" : value.type_name(); }

// The text of field `key`: an error unless it is a string; nothing if it is absent.
Result<std::optional<std::string>> text_field(const json& object, const std::string& key,
                                              const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end()) return std::optional<std::string>();
  if (at->is_string()) return std::optional(at->get<std::string>());
  const std::string help = at->is_array() && key == "prompt"
                               ? "chat messages are not in this version; give the prompt's text"
                               : "";
  return bad_line(where, "`" + key + "` must be a string, found " + type_help(*at), help);
}

Error missing_field(const std::string& key, const std::string& where, const json& object) {
  std::string fields;
  for (const auto& item : object.items()) fields += (fields.empty() ? "" : ", ") + item.key();
  return bad_line(where, "the line has no `" + key + "`",
                  "its fields are: " + (fields.empty() ? "none" : fields) +
                      "; data.prompt_key, answer_key and completion_key name other ones");
}

// ": nested more than 64 deep" where that is the reason.
std::string over_limit(const std::string& line) {
  const auto over = json_over_limit(line);
  return over ? ": it is " + *over : "";
}

Result<Record> parse_record(std::string line, const DatasetKeys& keys, RecordNeeds needs,
                            std::string where) {
  const json object = parse_json(line);
  if (object.is_discarded())
    return bad_line(where, "not a line of JSON" + over_limit(line),
                    "a data file has one JSON object per line");
  if (!object.is_object())
    return bad_line(where, std::string("expected a JSON object, found ") + type_help(object),
                    "a data file has one JSON object per line");
  auto prompt = text_field(object, keys.prompt, where);
  if (!prompt) return prompt.error();
  if (!*prompt) return missing_field(keys.prompt, where, object);
  auto completion = text_field(object, keys.completion, where);
  if (needs == RecordNeeds::kCompletion) {
    if (!completion) return completion.error();
    if (!*completion) return missing_field(keys.completion, where, object);
  }
  const auto answer = object.find(keys.answer);
  if (needs == RecordNeeds::kAnswer && answer == object.end())
    return missing_field(keys.answer, where, object);

  Record record{.prompt = std::move(**prompt), .json = std::move(line), .where = std::move(where)};
  if (answer != object.end()) record.answer_json = dump_json(*answer);
  if (completion) record.completion = std::move(*completion);
  return record;
}

// The next line without its end; one that is too long with one byte more than is allowed.
bool next_line(std::istream& file, std::vector<char>& buffer, std::string& line) {
  buffer.resize(kRecordBytesMax + 2);  // and the byte that ends what getline() stores
  file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  const auto taken = static_cast<std::size_t>(file.gcount());
  const bool with_end = file.good();
  line.assign(buffer.data(), with_end ? taken - 1 : taken);
  return with_end || taken > 0;
}

Result<void> append_file(const std::filesystem::path& path, const DatasetKeys& keys,
                         RecordNeeds needs, std::size_t& bytes, std::vector<Record>& records) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  if (!file || std::filesystem::is_directory(path, ignored))
    return Error{ErrorCode::kFailed, "cannot read the data file: " + errno_text(errno),
                 path.string(), ""};
  if (auto binary = binary_data_error(path)) return *binary;
  const std::size_t before = records.size();
  std::size_t number = 0;
  std::vector<char> buffer;
  for (std::string line; next_line(file, buffer, line);) {
    ++number;
    const std::string where = path.string() + ":" + std::to_string(number);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.size() > kRecordBytesMax)
      return bad_line(where, "the line has more than " + std::to_string(kRecordBytesMax) + " bytes",
                      "a data file has one JSON object per line");
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    bytes += line.size();
    if (bytes > kDatasetBytesMax || records.size() >= kDatasetRecordsMax)
      return bad_line(where, "the data set is larger than Tandem keeps in memory",
                      "the most is " + std::to_string(kDatasetBytesMax >> 30) + " GiB and " +
                          std::to_string(kDatasetRecordsMax) + " records");
    auto record = parse_record(std::move(line), keys, needs, where);
    if (!record) return record.error();
    records.push_back(std::move(*record));
  }
  if (file.bad())
    return Error{ErrorCode::kFailed, "cannot read the data file: " + errno_text(errno),
                 path.string(), ""};
  if (records.size() == before)
    return bad_line(path.string(), "the data file holds no records", "one JSON object per line");
  return {};
}

std::vector<std::uint32_t> shuffled(std::uint64_t seed, std::uint32_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  Rng rng(seed);
  shuffle(std::span(order), rng);
  return order;
}

}  // namespace

DatasetKeys dataset_keys(const DataSpec& data) {
  return {data.prompt_key, data.answer_key, data.completion_key};
}

Result<std::vector<Record>> load_dataset(const std::vector<std::filesystem::path>& files,
                                         const DatasetKeys& keys, RecordNeeds needs) {
  std::vector<Record> records;
  std::size_t bytes = 0;
  for (const std::filesystem::path& file : files)
    if (auto read = append_file(file, keys, needs, bytes, records); !read) return read.error();
  return records;
}

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t size,
                                       bool shuffle) {
  if (shuffle) return shuffled(derive_seed(derive_seed(seed, "epoch"), {epoch}), size);
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

HeldOut split_held_out(std::uint64_t seed, std::uint32_t size) {
  std::vector<std::uint32_t> order = shuffled(derive_seed(seed, "held_out"), size);
  const std::uint32_t held = size < 2 ? 0 : std::max(1u, size / kHeldOutShare);
  HeldOut split{{order.begin() + held, order.end()}, {order.begin(), order.begin() + held}};
  return split;
}

}  // namespace tandem::cli
