// Reads a data set line by line, so that every error can name its line, and gives each line on as
// text: `answer` and unknown fields go to the reward as they were written. There are two
// exceptions, in which the line is written anew. A conversation is rendered here, once, and its
// text stands under the prompt's key, so that the exchange, the rewards and the samples see the
// prompt that the model sees. And a job may name the fields that it keeps.
//
// A data set may have millions of lines. Each is checked whole, as JSON and UTF-8, but only the few
// named fields become values (scan_object), in strings that are used again for the next line. The
// values of a whole line are built for these exceptions, and for the text of an error.
//
// Files come from users and may be anything. Each bound is checked before memory is taken for what
// it limits: a reader of lines has a limit (line_reader.h), and the sums of bytes and records are
// checked per line. Another format is recognised by its head (foreign_input.h) before its first
// line is parsed.
#include "actors/job/dataset.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "actors/data/json_fields.h"
#include "actors/data/open_records.h"
#include "actors/job/conversation.h"
#include "actors/model/utf8.h"
#include "actors/reward/make_verifier.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::job {
namespace {

using data::JsonField;
using nlohmann::json;

const char* type_help(const json& value) { return value.is_null() ? "null" : value.type_name(); }

constexpr std::size_t kFieldsShown = 40;

// The members of `object`, and those of objects right in it by their paths, without nulls.
std::vector<std::string> paths_of(const json& object) {
  std::vector<std::string> paths;
  for (const auto& member : object.items()) {
    if (member.value().is_null()) continue;
    if (!member.value().is_object() || member.value().empty()) paths.push_back(member.key());
    if (!member.value().is_object()) continue;
    for (const auto& inner : member.value().items())
      if (!inner.value().is_null()) paths.push_back(member.key() + "." + inner.key());
  }
  return paths;
}

Error missing_field(const std::string& key, const std::string& where, const std::string& line) {
  const std::vector<std::string> paths = paths_of(parse_json(line));
  std::string fields;
  for (std::size_t i = 0; i < std::min(paths.size(), kFieldsShown); ++i)
    fields += (fields.empty() ? "" : ", ") + paths[i];
  if (paths.size() > kFieldsShown)
    fields += " and " + std::to_string(paths.size() - kFieldsShown) + " more";
  return bad_line(where, "the line has no `" + key + "`",
                  "its fields are: " + (fields.empty() ? "none" : fields) +
                      "; data.prompt_key, answer_key and completion_key name other ones");
}

// ": it is nested more than 64 deep", where a limit of the JSON parser is why the line was refused.
std::string over_limit(const std::string& line) {
  const auto over = json_over_limit(line);
  return over ? ": it is " + *over : "";
}

constexpr const char* kOneObject = "a record is one JSON object";

// Why the line was refused by the JSON parser.
Error no_json(const std::string& where, const std::string& line) {
  const auto malformed = model::first_malformed_utf8(line);
  if (!malformed) return bad_line(where, "not a line of JSON" + over_limit(line), kOneObject);
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned char>(line[*malformed]));
  return bad_line(where,
                  "the line is not UTF-8: byte " + std::string(byte) + " at column " +
                      std::to_string(*malformed + 1),
                  "save the file as UTF-8; where it is Latin-1: iconv -f latin1 -t utf-8 OLD > "
                  "NEW");
}

// Where a conversation is looked for if the prompt's key is absent.
constexpr const char* kMessages = "messages";

// Columns by which data sets give a model more than text. A record without a value in them is text.
// The first one goes to the chat template of a conversation.
constexpr std::array<std::string_view, 7> kBeyondText{kTools,  "images", "image", "videos",
                                                      "video", "audios", "audio"};

// Whether the value of such a column is more than an empty list, object or text. Tables often have
// lists and objects as texts.
bool has_value(const json& column) {
  if (!column.is_string()) return !column.empty();
  const std::string& text = column.get_ref<const std::string&>();
  constexpr std::array<std::string_view, 4> kNothing{"", "[]", "{}", "null"};
  return std::ranges::count(kNothing, text) == 0;
}

// Copies the value that `path` names from one object to another, within the same objects.
void copy_path(const json& from, std::string_view path, json& to) {
  const json* const value = find_path(from, path);
  if (!value || value->is_null()) return;
  if (const auto whole = from.find(path); whole != from.end() && !whole->is_null()) {
    to[std::string(path)] = *value;
    return;
  }
  const std::size_t dot = path.find('.');
  const std::string outer(path.substr(0, dot));
  json& inner = to[outer];
  if (inner.is_null()) inner = json::object();
  copy_path(from[outer], path.substr(dot + 1), inner);
}

// The name of a file up to its first dot, without the number of a shard: "train" of
// "train-00000-of-00002.parquet".
std::string short_name(const std::filesystem::path& path) {
  std::string name = path.filename();
  name.resize(std::min(name.size(), name.find('.')));
  const auto digits = [&name](std::size_t from, std::size_t to) {
    return to > from && name.find_first_not_of("0123456789", from) >= to;
  };
  const std::size_t of = name.rfind("-of-"), dash = of == name.npos ? of : name.rfind('-', of - 1);
  if (of == name.npos || of == 0 || dash == name.npos || dash == 0) return name;
  if (digits(dash + 1, of) && digits(of + 4, name.size())) name.resize(dash);
  return name;
}

// Reads the lines of one data set, and knows what all of its files have in common.
class DatasetReader {
 public:
  DatasetReader(const DatasetKeys& keys, RecordNeeds needs, const TakeRecord& take,
                const TellReading& tell)
      : keys_(keys),
        needs_(needs),
        take_(take),
        tell_(tell),
        chat_(keys.chat),
        fields_{JsonField{.key = keys.prompt}, JsonField{.key = kMessages},
                JsonField{.key = keys.completion}, JsonField{.key = keys.data_source},
                JsonField{.key = keys.answer}} {
    for (std::size_t i = 0; i < kBeyondText.size(); ++i)
      fields_[kOwnFields + i].key = kBeyondText[i];
  }

  void expect(std::uint64_t bytes) { progress_.bytes_total += bytes; }
  Result<void> read(const std::filesystem::path& path);

 private:
  using Type = JsonField::Type;

  // Parses record_.json into the other members of record_.
  Result<void> parse();
  Result<void> refuse_beyond_text() const;
  bool is_conversation() const;
  bool reward_reads(std::string_view key) const;
  Result<void> parse_prompt();
  Result<void> parse_conversation();
  void keep_named_fields();
  // The text of a field; nothing if the line has none, an error if it is not a string.
  Result<void> parse_text(const JsonField& field, std::optional<std::string>& text) const;
  Result<void> count_in();

  const DatasetKeys& keys_;
  const RecordNeeds needs_;
  const TakeRecord& take_;
  const TellReading& tell_;
  RecordChat chat_;
  static constexpr std::size_t kOwnFields = 5;
  // Those of the constructor's list, then those of kBeyondText.
  std::array<JsonField, kOwnFields + kBeyondText.size()> fields_;
  const JsonField &prompt_ = fields_[0], &messages_ = fields_[1], &completion_ = fields_[2],
                  &data_source_ = fields_[3], &answer_ = fields_[4], &tools_ = fields_[kOwnFields];
  Record record_;  // the record of the present line
  ReadingProgress progress_;
  std::size_t bytes_ = 0;  // the bytes of all lines
};

Result<void> DatasetReader::parse_text(const JsonField& field,
                                       std::optional<std::string>& text) const {
  if (field.type != Type::string) text.reset();
  if (field.type == Type::discarded) return {};
  if (field.type != Type::string)
    return bad_line(
        record_.where,
        "`" + std::string(field.key) + "` must be a string, found " + type_help(json(field.type)),
        "");
  text = field.text;
  return {};
}

// The line is written anew in the form that is kept (dataset.h).
Result<void> DatasetReader::parse_conversation() {
  json object = parse_json(record_.json);
  const bool is_text = prompt_.type == Type::string;
  const bool is_prompt = is_text || prompt_.type == Type::array;
  const json* const given = find_path(object, is_prompt ? keys_.prompt : kMessages);
  auto messages = plain_messages(is_text ? conversation_of(prompt_.text) : *given,
                                 keys_.system_prompt, record_.where);
  if (!messages) return messages.error();
  const bool has_tools = tools_.type != Type::discarded && has_value(object.at(kTools));
  auto text = chat_.text_of({.messages = *messages,
                             .list_key = is_prompt && !is_text ? keys_.prompt : kMessages,
                             .line = record_.json,
                             .has_tools = has_tools,
                             .tools_are_optional = reward_reads(kTools)},
                            record_.where);
  if (!text) return text.error();
  // A line that has a prompt and a list of messages beside it keeps that list.
  if (!is_prompt || messages_.type == Type::discarded) object[kMessages] = *std::move(messages);
  set_path(object, keys_.prompt, *text);
  record_.json = dump_json(object);
  record_.prompt = *std::move(text);
  record_.chat = chat_.format();
  return {};
}

bool DatasetReader::is_conversation() const {
  if (prompt_.type == Type::string) return keys_.prompt_is == PromptIs::kChat;
  return (prompt_.type == Type::discarded ? messages_ : prompt_).type == Type::array;
}

bool DatasetReader::reward_reads(std::string_view key) const {
  return keys_.extra && std::ranges::count(*keys_.extra, key) > 0;
}

Result<void> DatasetReader::parse_prompt() {
  record_.chat.reset();
  if (is_conversation()) return parse_conversation();
  if (prompt_.type == Type::discarded)
    return missing_field(keys_.prompt, record_.where, record_.json);
  std::optional<std::string> text;
  if (auto parsed = parse_text(prompt_, text); !parsed) return parsed;
  if (keys_.system_prompt)
    return bad_line(
        record_.where,
        "`data.system_prompt` is for conversations, and `" + keys_.prompt + "` is a text",
        "data.prompt_is: chat makes the message of a user of each text");
  record_.prompt = *std::move(text);
  return {};
}

// A model that never sees an image would be trained to answer without it.
Result<void> DatasetReader::refuse_beyond_text() const {
  for (std::size_t i = kOwnFields; i < fields_.size(); ++i) {
    const std::string_view key = fields_[i].key;
    if (fields_[i].type == Type::discarded || reward_reads(key)) continue;
    const bool is_tools = key == kTools;
    // Of a record that is neither a conversation nor a text parse_prompt() tells.
    if (is_tools && (is_conversation() || prompt_.type != Type::string)) continue;
    if (const json object = parse_json(record_.json); has_value(object.at(key)))
      return bad_line(
          record_.where,
          "the line has `" + std::string(key) + "`, and " +
              (is_tools ? "its prompt is a text: only conversations show tools"
                        : "models of this version get text alone"),
          std::string(is_tools ? "data.prompt_is: chat makes a conversation of the text; or "
                               : "") +
              "leave the field out; or, where it is for the reward, name it in "
              "data.extra_keys with all others that the reward reads");
  }
  return {};
}

void DatasetReader::keep_named_fields() {
  const json object = parse_json(record_.json);
  json kept = json::object();
  for (const std::string* key : {&keys_.prompt, &keys_.answer, &keys_.data_source})
    copy_path(object, *key, kept);
  if (record_.chat) copy_path(object, kMessages, kept);
  for (const std::string& key : *keys_.extra) copy_path(object, key, kept);
  record_.json = dump_json(kept);
}

Result<void> DatasetReader::parse() {
  const Type type = data::scan_object(record_.json, fields_);
  if (type == Type::discarded) return no_json(record_.where, record_.json);
  if (type != Type::object)
    return bad_line(record_.where,
                    std::string("expected a JSON object, found ") + type_help(json(type)),
                    kOneObject);
  // Tables that are written as JSON have a null where a record has no value.
  for (JsonField& field : fields_)
    if (field.type == Type::null) field.type = Type::discarded;
  if (auto refused = refuse_beyond_text(); !refused) return refused;
  if (auto parsed = parse_prompt(); !parsed) return parsed;
  // A completion of another type matters only where one is needed.
  const auto completion = parse_text(completion_, record_.completion);
  if (needs_ == RecordNeeds::kCompletion) {
    if (!completion) return completion;
    if (!record_.completion) return missing_field(keys_.completion, record_.where, record_.json);
  }
  if (auto parsed = parse_text(data_source_, record_.data_source); !parsed) return parsed;
  if (needs_ == RecordNeeds::kAnswer && answer_.type == Type::discarded)
    return missing_field(keys_.answer, record_.where, record_.json);
  // Of a warm start nothing but texts is kept.
  if (keys_.extra && needs_ != RecordNeeds::kCompletion) keep_named_fields();
  return {};
}

// Counts the present line. An error where it is one too many.
Result<void> DatasetReader::count_in() {
  bytes_ += record_.json.size();
  ++progress_.records;
  if (bytes_ <= kDatasetBytesMax && progress_.records <= kDatasetRecordsMax) return {};
  return bad_line(record_.where, "the data set is larger than Tandem keeps in memory",
                  "the most is " + std::to_string(kDatasetBytesMax >> 30) + " GiB and " +
                      std::to_string(kDatasetRecordsMax) + " records");
}

Result<void> DatasetReader::read(const std::filesystem::path& path) {
  progress_.file = path;
  const auto opened = data::open_records(path, kRecordBytesMax, [this](const std::string& what) {
    progress_.waits = what;
    if (tell_) tell_(progress_);
  });
  progress_.waits.clear();
  if (!opened) return opened.error();
  data::RecordSource& source = **opened;
  const std::uint64_t before = progress_.records, bytes_before = progress_.bytes;
  record_.file = short_name(path);
  for (;;) {
    const auto text = source.next();
    if (!text) return text.error();
    if (!*text) break;
    if (tell_ && (progress_.records - before + 1) % kLinesPerNotice == 0) {
      progress_.bytes = bytes_before + source.bytes_read();
      tell_(progress_);
    }
    record_.json = **text;
    record_.where = source.place();
    if (auto counted = count_in(); !counted) return counted;
    if (auto parsed = parse(); !parsed) return parsed;
    if (auto taken = take_(record_); !taken) return taken;
  }
  progress_.bytes = bytes_before + source.bytes_read();
  if (progress_.records == before)
    return bad_line(path.string(), "the data file holds no records", "name a file that has some");
  return {};
}

}  // namespace

DatasetKeys dataset_keys(const JobSpec& job) {
  const DataSpec& data = job.data;
  DatasetKeys keys{.prompt = data.prompt_key,
                   .answer = data.answer_key,
                   .completion = data.completion_key,
                   .data_source = data.data_source_key,
                   .chat = {.model = job.model.path,
                            .chosen = data.chat_template.text,
                            .kwargs = data.chat_template_kwargs.text},
                   .prompt_is = data.prompt_is,
                   .system_prompt = data.system_prompt,
                   .extra = data.extra_keys};
  keys.chat.options.enable_thinking = data.enable_thinking;
  keys.chat.options.date = data.chat_date;
  return keys;
}

RecordNeeds needs_of_prompts(const JobSpec& job) {
  // A part for some sources alone does not say what other records need.
  bool compares = false;
  for (const NamedReward& reward : rewards_of(job.reward))
    compares =
        compares || (reward.spec->sources.empty() &&
                     reward::needs_answer(reward.spec->type, reward.spec->pattern.value_or("")));
  return compares ? RecordNeeds::kAnswer : RecordNeeds::kPrompt;
}

Result<void> read_dataset(const std::vector<std::filesystem::path>& files, const DatasetKeys& keys,
                          RecordNeeds needs, const TakeRecord& take, const TellReading& tell) {
  DatasetReader reader(keys, needs, take, tell);
  for (const std::filesystem::path& file : files) {
    std::error_code unknown;  // the reader says what is wrong with such a file
    const std::uint64_t bytes = std::filesystem::file_size(file, unknown);
    if (!unknown) reader.expect(bytes);
  }
  for (const std::filesystem::path& file : files)
    if (auto read = reader.read(file); !read) return read;
  return {};
}

Result<std::vector<Record>> load_dataset(const std::vector<std::filesystem::path>& files,
                                         const DatasetKeys& keys, RecordNeeds needs) {
  std::vector<Record> records;
  const auto keep = [&](const Record& record) -> Result<void> {
    records.push_back(record);
    return {};
  };
  if (auto read = read_dataset(files, keys, needs, keep); !read) return read.error();
  return records;
}

}  // namespace tandem::job
