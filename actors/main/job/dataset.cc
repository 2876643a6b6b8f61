// Reads a data set line by line, so that every error can name its line, and keeps each line as
// text: `answer` and unknown fields go to the reward as they were written. A conversation is the
// exception: it is rendered here, once, and the line is written anew with the text under the
// prompt's key, so that the exchange, the rewards and the samples see the prompt that the model
// sees.
//
// Files come from users and may be anything. Each bound is checked before memory is taken for what
// it limits: a line is read into a buffer of the largest allowed size, and the sums of bytes and
// records are checked per line. A binary file is recognised by its head (foreign_input.h) before
// its first line is parsed.
//
// An order is a permutation drawn from a derived seed (DS-1), so that it depends on the seed, the
// epoch and the size alone and not on earlier draws.
#include "actors/main/job/dataset.h"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "actors/main/job/foreign_input.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"

namespace tandem::app {
namespace {

using nlohmann::json;

Error bad_line(const std::string& where, std::string message, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), where, std::move(help)};
}

const char* type_help(const json& value) { return value.is_null() ? "null" : value.type_name(); }

// The text of field `key`; nothing if the field is absent, an error if it is not a string.
Result<std::optional<std::string>> text_field(const json& object, const std::string& key,
                                              const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end()) return std::optional<std::string>();
  if (at->is_string()) return std::optional(at->get<std::string>());
  return bad_line(where, "`" + key + "` must be a string, found " + type_help(*at), "");
}

Error missing_field(const std::string& key, const std::string& where, const json& object) {
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

// Where a conversation is looked for if the prompt's key is absent.
constexpr const char* kMessages = "messages";

Result<actors::ChatMessage> parse_message(const json& message, std::size_t number,
                                          const std::string& where) {
  const std::string at = "message " + std::to_string(number);
  if (!message.is_object())
    return bad_line(where, at + " must be an object, found " + type_help(message),
                    R"(as in {"role": "user", "content": "Hello"})");
  actors::ChatMessage parsed;
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
      const auto known = actors::read_chat_template(source_.model);
      if (!known)
        return Error{
            ErrorCode::kInvalid,
            "a conversation at " + where + " needs a chat template: " + known.error().message,
            known.error().where,
            "choose one of " + join(chat_template_names()) +
                " with data.chat_template, or give prompts as text"};
      chat_ = *known;
    }
    std::vector<actors::ChatMessage> parsed;
    for (const json& message : messages) {
      auto one = parse_message(message, parsed.size() + 1, where);
      if (!one) return one.error();
      parsed.push_back(*std::move(one));
    }
    auto text = actors::render_chat(*chat_, parsed, source_.options);
    if (!text) return bad_line(where, text.error().message, "");
    return text;
  }

 private:
  const ChatSource& source_;
  std::optional<actors::ChatTemplate> chat_;
};

// The text of the prompt. Where the line has a conversation, `object` and `line` are changed to the
// form that is kept (dataset.h).
Result<std::string> read_prompt(json& object, std::string& line, const DatasetKeys& keys,
                                ChatRenderer& chat, const std::string& where) {
  auto conversation = object.find(keys.prompt);
  if (conversation == object.end()) conversation = object.find(kMessages);
  if (conversation == object.end() || !conversation->is_array()) {
    auto given = text_field(object, keys.prompt, where);
    if (!given) return given.error();
    if (!*given) return missing_field(keys.prompt, where, object);
    return **std::move(given);
  }
  auto text = chat.text_of(*conversation, where);
  if (!text) return text.error();
  object.emplace(kMessages, json(*conversation));
  object[keys.prompt] = *text;
  line = dump_json(object);
  return text;
}

// The text of the last message of the user in a conversation, in the form that is kept.
std::optional<std::string> last_of_user(const json& object) {
  const auto messages = object.find(kMessages);
  if (messages == object.end() || !messages->is_array()) return std::nullopt;
  for (auto message = messages->rbegin(); message != messages->rend(); ++message)
    if (message->is_object() && message->value("role", json()) == "user" &&
        message->value("content", json()).is_string())
      return (*message)["content"].get<std::string>();
  return std::nullopt;
}

Result<Record> parse_record(std::string line, const DatasetKeys& keys, RecordNeeds needs,
                            ChatRenderer& chat, std::string where) {
  json object = parse_json(line);
  if (object.is_discarded())
    return bad_line(where, "not a line of JSON" + over_limit(line),
                    "a data file has one JSON object per line");
  if (!object.is_object())
    return bad_line(where, std::string("expected a JSON object, found ") + type_help(object),
                    "a data file has one JSON object per line");
  auto prompt = read_prompt(object, line, keys, chat, where);
  if (!prompt) return prompt.error();
  // A completion of another type matters only where one is needed.
  auto completion = text_field(object, keys.completion, where);
  if (needs == RecordNeeds::kCompletion) {
    if (!completion) return completion.error();
    if (!*completion) return missing_field(keys.completion, where, object);
  }
  auto data_source = text_field(object, keys.data_source, where);
  if (!data_source) return data_source.error();
  const auto answer = object.find(keys.answer);
  if (needs == RecordNeeds::kAnswer && answer == object.end())
    return missing_field(keys.answer, where, object);

  Record record{.prompt = *std::move(prompt), .json = std::move(line), .where = std::move(where)};
  if (answer != object.end()) record.answer_json = dump_json(*answer);
  if (completion) record.completion = std::move(*completion);
  record.data_source = *std::move(data_source);
  record.user = last_of_user(object);
  return record;
}

// The next line without its newline; false at the end of the file. A line above the limit comes
// back with one byte more than is allowed, which the caller refuses.
bool next_line(std::istream& file, std::vector<char>& buffer, std::string& line) {
  buffer.resize(kRecordBytesMax + 2);  // and the byte that ends what getline() stores
  file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  const auto taken = static_cast<std::size_t>(file.gcount());
  // gcount() includes the newline that getline() took; the last line of a file may have none.
  const bool with_end = file.good();
  line.assign(buffer.data(), with_end ? taken - 1 : taken);
  return with_end || taken > 0;
}

Result<void> append_file(const std::filesystem::path& path, const DatasetKeys& keys,
                         RecordNeeds needs, ChatRenderer& chat, std::size_t& bytes,
                         std::vector<Record>& records) {
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
    // Files of Windows end their lines with CR LF.
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
    auto record = parse_record(std::move(line), keys, needs, chat, where);
    if (!record) return record.error();
    records.push_back(std::move(*record));
  }
  // The loop also ends at an I/O error, after which the records that were read must not pass for
  // all.
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

Result<std::vector<Record>> load_dataset(const std::vector<std::filesystem::path>& files,
                                         const DatasetKeys& keys, RecordNeeds needs) {
  std::vector<Record> records;
  ChatRenderer chat(keys.chat);
  std::size_t bytes = 0;
  for (const std::filesystem::path& file : files)
    if (auto read = append_file(file, keys, needs, chat, bytes, records); !read)
      return read.error();
  return records;
}

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t size,
                                       bool shuffle) {
  if (shuffle) return shuffled(derive_seed(derive_seed(seed, "epoch"), {epoch}), size);
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace tandem::app
