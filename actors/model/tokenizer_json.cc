#include <algorithm>
#include <set>

#include "actors/model/tokenizer_parts.h"
#include "actors/model/utf8.h"

namespace tandem::actors {
namespace {

using nlohmann::json;

constexpr std::int64_t kTokenIdMax = 1 << 24;
constexpr int kNestingMax = 4;

class Reader {
 public:
  Reader(const std::string& file, TokenizerParts& parts);

  Result<void> read(const json& document);

 private:
  Result<void> read_model(const json& model);
  Result<void> read_vocabulary(const json& model);
  Result<void> read_merges(const json& model);
  Result<void> read_normalizer(const json& normalizer, int depth);
  Result<void> read_pre_tokenizer(const json& step, int depth);
  Result<void> read_byte_level(const json& step);
  Result<void> read_split(const json& step);
  Result<void> read_added_tokens(const json& document);
  Result<void> read_added_token(const json& token);

  std::string bytes_of_symbols(const std::string& token) const;
  Result<void> place_token(std::int64_t id, const std::string& bytes);

  Error fail(const std::string& problem) const {
    return Error{.message = "tokenizer: " + problem, .where = file_};
  }
  Error refuse(const std::string& what) const {
    return Error{.message = "tokenizer: " + what + " is not supported",
                 .where = file_,
                 .help = "supported: byte-level BPE as GPT-2, Qwen2, Qwen3 and Llama 3 have it"};
  }

  const std::string& file_;
  TokenizerParts& parts_;
  std::array<std::uint32_t, 256> symbol_of_byte_;  // ByteLevel's printable stand-ins
  std::unordered_map<std::uint32_t, unsigned char> byte_of_symbol_;
  std::unordered_map<std::string, std::int32_t> vocabulary_;
};

const json* member(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

std::string type_of(const json& step) {
  const json* type = step.is_object() ? member(step, "type") : nullptr;
  return type != nullptr && type->is_string() ? type->get<std::string>() : step.dump();
}

bool flag(const json& object, const char* key, bool fallback) {
  const json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

Reader::Reader(const std::string& file, TokenizerParts& parts) : file_(file), parts_(parts) {
  std::uint32_t stand_in = 0x100;  // for bytes that do not print, in order
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
                        (byte >= 0xAE && byte <= 0xFF);
    symbol_of_byte_[byte] = prints ? byte : stand_in++;
    byte_of_symbol_[symbol_of_byte_[byte]] = static_cast<unsigned char>(byte);
  }
}

Result<void> Reader::read(const json& document) {
  if (!document.is_object()) return fail("tokenizer.json must be a JSON object");
  for (const char* key : {"truncation", "padding"})
    if (member(document, key)) return refuse(std::string("'") + key + "'");
  const json* model = member(document, "model");
  if (model == nullptr || !model->is_object()) return fail("key 'model' is missing");
  const json* decoder = member(document, "decoder");
  if (decoder == nullptr) return refuse("a missing decoder");
  if (type_of(*decoder) != "ByteLevel") return refuse("decoder " + type_of(*decoder));
  if (const json* normalizer = member(document, "normalizer"))
    if (Result<void> done = read_normalizer(*normalizer, 0); !done) return done;
  if (const json* pre = member(document, "pre_tokenizer")) {
    if (Result<void> done = read_pre_tokenizer(*pre, 0); !done) return done;
    if (parts_.symbols != Symbols::kBytes) return refuse("a pre_tokenizer without ByteLevel");
  }
  if (Result<void> done = read_model(*model); !done) return done;
  return read_added_tokens(document);
}

Result<void> Reader::read_normalizer(const json& normalizer, int depth) {
  const std::string type = type_of(normalizer);
  if (type == "NFC") {
    parts_.nfc = true;
    return {};
  }
  const json* list = normalizer.is_object() ? member(normalizer, "normalizers") : nullptr;
  if (type != "Sequence" || list == nullptr || !list->is_array() || depth == kNestingMax)
    return refuse("normalizer " + type);
  for (const json& step : *list)
    if (Result<void> done = read_normalizer(step, depth + 1); !done) return done;
  return {};
}

Result<void> Reader::read_pre_tokenizer(const json& step, int depth) {
  const std::string type = type_of(step);
  if (parts_.symbols == Symbols::kBytes)
    return refuse("pre_tokenizer " + type + " after ByteLevel");
  if (type == "ByteLevel") return read_byte_level(step);
  if (type == "Split") return read_split(step);
  const json* list = step.is_object() ? member(step, "pretokenizers") : nullptr;
  if (type != "Sequence" || list == nullptr || !list->is_array() || depth == kNestingMax)
    return refuse("pre_tokenizer " + type);
  for (const json& inner : *list)
    if (Result<void> done = read_pre_tokenizer(inner, depth + 1); !done) return done;
  return {};
}

Result<void> Reader::read_byte_level(const json& step) {
  parts_.symbols = Symbols::kBytes;
  parts_.add_prefix_space = flag(step, "add_prefix_space", true);
  if (parts_.add_prefix_space && !parts_.regexes.empty())
    return refuse("pre_tokenizer ByteLevel with add_prefix_space after Split");
  if (!flag(step, "use_regex", true)) return {};
  Result<WordRegex> regex = WordRegex::make(kGpt2Regex, file_);
  if (!regex) return regex.error();
  parts_.regexes.push_back(std::move(*regex));
  return {};
}

Result<void> Reader::read_split(const json& step) {
  const json* pattern = member(step, "pattern");
  const json* text =
      pattern != nullptr && pattern->is_object() ? member(*pattern, "Regex") : nullptr;
  if (text == nullptr || !text->is_string()) return refuse("pre_tokenizer Split without a Regex");
  const json* behavior = member(step, "behavior");
  if (behavior == nullptr || *behavior != "Isolated")
    return refuse("pre_tokenizer Split with behavior " +
                  (behavior == nullptr ? "null" : behavior->dump()));
  if (flag(step, "invert", false)) return refuse("pre_tokenizer Split with invert");
  Result<WordRegex> regex = WordRegex::make(text->get<std::string>(), file_);
  if (!regex) return regex.error();
  parts_.regexes.push_back(std::move(*regex));
  return {};
}

Result<void> Reader::read_model(const json& model) {
  if (const json* type = member(model, "type"); type != nullptr && *type != "BPE")
    return refuse("model " + type->dump());
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const json* affix = member(model, key); affix != nullptr && *affix != "")
      return refuse(std::string("model.") + key + " " + affix->dump());
  if (const json* dropout = member(model, "dropout"); dropout != nullptr && *dropout != 0)
    return refuse("model.dropout " + dropout->dump());
  if (flag(model, "byte_fallback", false)) return refuse("model.byte_fallback");
  if (Result<void> done = read_vocabulary(model); !done) return done;
  if (parts_.add_prefix_space && parts_.byte_ids[' '] == TokenizerParts::kNoToken)
    return fail("pre_tokenizer adds a space, which model.vocab does not have");
  if (Result<void> done = read_merges(model); !done) return done;
  if (flag(model, "ignore_merges", false))
    for (const auto& [token, id] : vocabulary_) parts_.whole_words.emplace(parts_.bytes[id], id);
  return {};
}

// The bytes that a vocabulary entry stands for; an entry outside ByteLevel's alphabet is itself.
std::string Reader::bytes_of_symbols(const std::string& token) const {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const auto symbol = byte_of_symbol_.find(next_code_point(token, at));
    if (symbol == byte_of_symbol_.end()) return token;
    bytes += static_cast<char>(symbol->second);
  }
  return bytes;
}

Result<void> Reader::place_token(std::int64_t id, const std::string& bytes) {
  if (id < 0 || id > kTokenIdMax)
    return fail("token id " + std::to_string(id) + " is out of range");
  const auto index = static_cast<std::size_t>(id);
  if (index >= parts_.bytes.size()) {
    parts_.bytes.resize(index + 1);
    parts_.special.resize(index + 1);
  }
  parts_.bytes[index] = bytes;
  return {};
}

Result<void> Reader::read_vocabulary(const json& model) {
  const json* vocab = member(model, "vocab");
  if (vocab == nullptr || !vocab->is_object()) return fail("key 'model.vocab' must be an object");
  std::set<std::int64_t> ids;
  for (const auto& [token, value] : vocab->items()) {
    if (!value.is_number_integer() || token.empty())
      return fail("entry '" + token + "' of model.vocab is not a token with an integer id");
    const auto id = value.get<std::int64_t>();
    if (!ids.insert(id).second)
      return fail("id " + std::to_string(id) + " occurs twice in model.vocab");
    if (Result<void> placed = place_token(id, bytes_of_symbols(token)); !placed) return placed;
    vocabulary_.emplace(token, static_cast<std::int32_t>(id));
  }
  parts_.byte_ids.fill(TokenizerParts::kNoToken);
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    if (parts_.symbols == Symbols::kAscii && byte >= 0x80) break;
    std::string symbol;
    append_utf8(symbol, parts_.symbols == Symbols::kBytes ? symbol_of_byte_[byte] : byte);
    const auto at = vocabulary_.find(symbol);
    if (at == vocabulary_.end()) continue;
    parts_.byte_ids[byte] = at->second;
    parts_.bytes[at->second] = static_cast<char>(byte);
  }
  return {};
}

Result<void> Reader::read_merges(const json& model) {
  const json* merges = member(model, "merges");
  if (merges == nullptr) return {};
  if (!merges->is_array()) return fail("key 'model.merges' must be a list");
  std::int32_t rank = 0;
  for (const json& merge : *merges) {
    const auto bad = [&] {
      return fail("merge " + std::to_string(rank) + " of model.merges, " + merge.dump() +
                  ", does not join two tokens of the vocabulary into a third");
    };
    std::string left, right;
    if (merge.is_string()) {
      const auto text = merge.get<std::string>();
      const auto space = text.find(' ');
      if (space == text.npos || text.find(' ', space + 1) != text.npos) return bad();
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      return bad();
    }
    const auto a = vocabulary_.find(left), b = vocabulary_.find(right),
               joined = vocabulary_.find(left + right);
    if (a == vocabulary_.end() || b == vocabulary_.end() || joined == vocabulary_.end())
      return bad();
    parts_.merges.add(a->second, b->second, {rank++, joined->second});
  }
  return {};
}

Result<void> Reader::read_added_tokens(const json& document) {
  const json* added = member(document, "added_tokens");
  if (added == nullptr) return {};
  if (!added->is_array()) return fail("key 'added_tokens' must be a list");
  for (const json& token : *added)
    if (Result<void> done = read_added_token(token); !done) return done;
  std::stable_sort(parts_.added.begin(), parts_.added.end(), [](const auto& a, const auto& b) {
    return a.content.size() > b.content.size();
  });
  return {};
}

Result<void> Reader::read_added_token(const json& token) {
  const json* id = token.is_object() ? member(token, "id") : nullptr;
  const json* content = token.is_object() ? member(token, "content") : nullptr;
  if (id == nullptr || content == nullptr || !id->is_number_integer() || !content->is_string() ||
      *content == "")
    return fail("an entry of added_tokens has no id and content: " + token.dump());
  for (const char* key : {"lstrip", "rstrip", "single_word"})
    if (flag(token, key, false)) return refuse("added token " + content->dump() + " with " + key);
  const bool special = flag(token, "special", false);
  AddedToken entry{content->get<std::string>(), 0, special, flag(token, "normalized", !special)};
  if (Result<void> placed = place_token(id->get<std::int64_t>(), entry.content); !placed)
    return placed;
  entry.id = id->get<std::int32_t>();
  parts_.special[static_cast<std::size_t>(entry.id)] = special;
  parts_.added.push_back(std::move(entry));
  return {};
}

}  // namespace

Result<void> read_tokenizer_json(const json& document, const std::string& file,
                                 TokenizerParts& parts) {
  return Reader(file, parts).read(document);
}

}  // namespace tandem::actors
