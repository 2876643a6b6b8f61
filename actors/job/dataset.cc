// Reads a data set line by line, so that every error can name its line, and gives each line on as
// text: `answer` and unknown fields go to the reward as they were written. A conversation is the
// exception: it is rendered here, once, and the line is written anew with the text under the
// prompt's key, so that the exchange, the rewards and the samples see the prompt that the model
// sees.
//
// A data set may have millions of lines. Each is checked whole, as JSON and UTF-8, but only the few
// named fields become values (scan_object), in strings that are used again for the next line. The
// values of a whole line are built for conversations, and for the text of an error.
//
// Files come from users and may be anything. Each bound is checked before memory is taken for what
// it limits: a reader of lines has a limit (line_reader.h), and the sums of bytes and records are
// checked per line. Another format is recognised by its head (foreign_input.h) before its first
// line is parsed.
//
// An order is a permutation drawn from a derived seed (DS-1), so that it depends on the seed, the
// epoch and the size alone and not on earlier draws.
#include "actors/job/dataset.h"

#include <array>
#include <numeric>

#include "actors/job/foreign_input.h"
#include "actors/reward/make_verifier.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/line_reader.h"
#include "runtime/base/rng.h"

namespace tandem::job {
namespace {

using nlohmann::json;

Error bad_line(const std::string& where, std::string message, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), where, std::move(help)};
}

const char* type_help(const json& value) { return value.is_null() ? "null" : value.type_name(); }

Error missing_field(const std::string& key, const std::string& where, const std::string& line) {
  const json object = parse_json(line);
  std::string fields;
  for (const auto& item : object.items()) fields += (fields.empty() ? "" : ", ") + item.key();
  return bad_line(where, "the line has no `" + key + "`",
                  "its fields are: " + (fields.empty() ? "none" : fields) +
                      "; data.prompt_key, answer_key and completion_key name other ones");
}

// ": it is nested more than 64 deep", where a limit of the JSON parser is why the line was refused.
std::string over_limit(const std::string& line) {
  const auto over = json_over_limit(line);
  return over ? ": it is " + *over : "";
}

constexpr const char* kOneObject = "a data file has one JSON object per line";

// Where a conversation is looked for if the prompt's key is absent.
constexpr const char* kMessages = "messages";

Result<model::ChatMessage> parse_message(const json& message, std::size_t number,
                                         const std::string& where) {
  const std::string at = "message " + std::to_string(number);
  if (!message.is_object())
    return bad_line(where, at + " must be an object, found " + type_help(message),
                    R"(as in {"role": "user", "content": "Hello"})");
  model::ChatMessage parsed;
  for (const auto& [key, value] : message.items()) {
    const bool role = key == "role";
    if (!role && key != "content") {
      if (value.is_null()) continue;
      return bad_line(where, at + " has `" + key + "`",
                      "messages of this version have a role and a text: no tools, no images");
    }
    if (!value.is_string())
      return bad_line(where,
                      "the " + key + " of " + at + " must be a string, found " + type_help(value),
                      "messages of this version have a role and a text: no tools, no images");
    (role ? parsed.role : parsed.content) = value.get<std::string>();
  }
  if (!message.contains("role") || !message.contains("content"))
    return bad_line(where, at + " has no " + (message.contains("role") ? "content" : "role"), "");
  return parsed;
}

// Renders the conversations of one data set. The model's template is read when the first
// conversation needs it: a model without a known template is then no error for data sets of plain
// prompts.
class ChatRenderer {
 public:
  explicit ChatRenderer(const ChatSource& source) : source_(source), chat_(source.chosen) {}

  Result<std::string> text_of(const json& messages, const std::string& where) {
    if (!chat_) {
      const auto known = model::read_chat_template(source_.model);
      if (!known)
        return Error{
            ErrorCode::kInvalid,
            "a conversation at " + where + " needs a chat template: " + known.error().message,
            known.error().where,
            "choose one of " + join(chat_template_names()) +
                " with data.chat_template, or give prompts as text"};
      chat_ = *known;
    }
    std::vector<model::ChatMessage> parsed;
    for (const json& message : messages) {
      auto one = parse_message(message, parsed.size() + 1, where);
      if (!one) return one.error();
      parsed.push_back(*std::move(one));
    }
    auto text = model::render_chat(*chat_, parsed, source_.options);
    if (!text) return bad_line(where, text.error().message, "");
    return text;
  }

  // Known once text_of() has succeeded.
  const std::optional<model::ChatTemplate>& chat() const { return chat_; }

 private:
  const ChatSource& source_;
  std::optional<model::ChatTemplate> chat_;
};

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
                JsonField{.key = keys.answer}} {}

  void expect(std::uint64_t bytes) { progress_.bytes_total += bytes; }
  Result<void> read(const std::filesystem::path& path);

 private:
  using Type = JsonField::Type;

  // Parses record_.json into the other members of record_.
  Result<void> parse();
  Result<void> parse_prompt();
  Result<void> parse_conversation();
  // The text of a field; nothing if the line has none, an error if it is not a string.
  Result<void> parse_text(const JsonField& field, std::optional<std::string>& text) const;
  Result<void> count_in();

  const DatasetKeys& keys_;
  const RecordNeeds needs_;
  const TakeRecord& take_;
  const TellReading& tell_;
  ChatRenderer chat_;
  std::array<JsonField, 5> fields_;  // in the order of the constructor
  const JsonField &prompt_ = fields_[0], &messages_ = fields_[1], &completion_ = fields_[2],
                  &data_source_ = fields_[3], &answer_ = fields_[4];
  Record record_;  // the record of the present line
  ReadingProgress progress_;
  std::size_t bytes_ = 0;  // the bytes of all lines
};

Result<void> DatasetReader::parse_text(const JsonField& field,
                                       std::optional<std::string>& text) const {
  text.reset();
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
  const std::string key = prompt_.type == Type::array ? keys_.prompt : kMessages;
  json messages = std::move(object[key]);
  auto text = chat_.text_of(messages, record_.where);
  if (!text) return text.error();
  // A line that has a prompt and a list of messages beside it keeps that list.
  if (key == kMessages || messages_.type == Type::discarded)
    object[kMessages] = std::move(messages);
  object[keys_.prompt] = *text;
  record_.json = dump_json(object);
  record_.prompt = *std::move(text);
  record_.chat = chat_.chat();
  return {};
}

Result<void> DatasetReader::parse_prompt() {
  record_.chat.reset();
  const bool absent = prompt_.type == Type::discarded;
  if ((absent ? messages_ : prompt_).type == Type::array) return parse_conversation();
  if (absent) return missing_field(keys_.prompt, record_.where, record_.json);
  std::optional<std::string> text;
  if (auto parsed = parse_text(prompt_, text); !parsed) return parsed;
  record_.prompt = *std::move(text);
  return {};
}

Result<void> DatasetReader::parse() {
  const Type type = scan_object(record_.json, fields_);
  if (type == Type::discarded)
    return bad_line(record_.where, "not a line of JSON" + over_limit(record_.json), kOneObject);
  if (type != Type::object)
    return bad_line(record_.where,
                    std::string("expected a JSON object, found ") + type_help(json(type)),
                    kOneObject);
  // Tables that are written as JSON have a null where a record has no value.
  for (JsonField& field : fields_)
    if (field.type == Type::null) field.type = Type::discarded;
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
  auto lines = LineReader::open(path, kRecordBytesMax);
  if (!lines)
    return Error{ErrorCode::kFailed, "cannot read the data file: " + cause_of(lines.error()),
                 path.string(), lines.error().help};
  if (auto foreign = foreign_data_error(path)) return *foreign;
  const std::uint64_t before = progress_.records, bytes_before = progress_.bytes;
  progress_.file = path;
  for (;;) {
    const auto line = lines->next();
    if (!line) {
      Error error = line.error();
      if (error.help.empty()) error.help = kOneObject;
      return error;
    }
    if (!*line) break;
    if (tell_ && lines->number() % kLinesPerNotice == 0) {
      progress_.bytes = bytes_before + lines->bytes_read();
      tell_(progress_);
    }
    std::string_view text = **line;
    // Files of Windows end their lines with CR LF.
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.find_first_not_of(" \t") == text.npos) continue;
    record_.json = text;
    record_.where.assign(path.native()).append(":").append(std::to_string(lines->number()));
    if (auto counted = count_in(); !counted) return counted;
    if (auto parsed = parse(); !parsed) return parsed;
    if (auto taken = take_(record_); !taken) return taken;
  }
  progress_.bytes = bytes_before + lines->bytes_read();
  if (progress_.records == before)
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

DatasetKeys dataset_keys(const JobSpec& job) {
  const DataSpec& data = job.data;
  DatasetKeys keys{
      .prompt = data.prompt_key,
      .answer = data.answer_key,
      .completion = data.completion_key,
      .data_source = data.data_source_key,
      .chat = {.model = job.model.path,
               .chosen = data.chat_template,
               .options = {.enable_thinking = data.enable_thinking, .date = data.chat_date}}};
  return keys;
}

RecordNeeds needs_of_prompts(const JobSpec& job) {
  const bool compares = reward::needs_answer(job.reward.type, job.reward.pattern.value_or(""));
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

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t size,
                                       bool shuffle) {
  if (shuffle) return shuffled(derive_seed(derive_seed(seed, "epoch"), {epoch}), size);
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace tandem::job
