// Reads a tokenizer.json into TokenizerParts, section by section. Every feature that changes tokens
// and that tokenizer.cc does not implement is refused: a tokenizer that is almost right would train
// a model on wrong ids without any error.
//
// The sections depend on each other in one order: the pre_tokenizer says whether symbols are bytes
// or characters, which the vocabulary needs; merges, added tokens and the post_processor then refer
// to ids of the vocabulary.
//
// ByteLevel writes every byte as a printable character: bytes that print as themselves, all others
// as U+0100 and the following code points, in order (bytes_to_unicode of GPT-2).
#include <algorithm>
#include <set>

#include "actors/model/nfc.h"
#include "actors/model/tokenizer_parts.h"
#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

using nlohmann::json;

constexpr std::int64_t kTokenIdMax = 1 << 24;  // bounds the table by id, as in model_config.cc
constexpr int kNestingMax = 4;                 // levels of Sequences in Sequences

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
  Result<void> read_digits(const json& step);
  Result<void> add_regex(std::string_view regex);
  Result<void> read_unknown(const json& model);
  Result<void> read_post_processor(const json& step, int depth);
  Result<void> read_template(const json& step);
  Result<void> read_added_tokens(const json& document);
  Result<void> read_added_token(const json& token);

  std::string bytes_of_symbols(const std::string& token) const;
  Result<void> place_token(std::int64_t id, const std::string& bytes);

  Error fail(const std::string& problem) const {
    return Error{.message = "tokenizer: " + problem, .where = file_};
  }
  Error refuse(const std::string& what) const {
    return Error{
        .message = "tokenizer: " + what + " is not supported",
        .where = file_,
        .help =
            "supported: byte-level BPE as GPT-2, Llama 3, Qwen2, Qwen3 and SmolLM have it; "
            "take the tokenizer.json that was published with such a model"};
  }

  const std::string& file_;
  TokenizerParts& parts_;
  std::array<std::uint32_t, 256> symbol_of_byte_;  // ByteLevel's printable stand-ins
  std::unordered_map<std::uint32_t, unsigned char> byte_of_symbol_;
  std::unordered_map<std::string, std::int32_t> vocabulary_;  // by the token as the file writes it
};

// A member of an object; null counts as absent, as in the reference.
const json* member(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

// The "type" of a step, or the step itself where it has none, for an error.
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
  // Without the ByteLevel decoder the library joins tokens in another way than Tokenizer::decode.
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
  if (Result<void> done = read_added_tokens(document); !done) return done;
  if (const json* post = member(document, "post_processor")) return read_post_processor(*post, 0);
  return {};
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
  if (type == "Digits") return read_digits(step);
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
  // The library would then add a space to every piece of the earlier step.
  if (parts_.add_prefix_space && !parts_.regexes.empty())
    return refuse("pre_tokenizer ByteLevel with add_prefix_space after Split or Digits");
  return flag(step, "use_regex", true) ? add_regex(kGpt2Regex) : Result<void>{};
}

Result<void> Reader::read_digits(const json& step) {
  return add_regex(flag(step, "individual_digits", false) ? kDigitRegex : kDigitsRegex);
}

Result<void> Reader::add_regex(std::string_view regex) {
  Result<WordRegex> made = WordRegex::make(regex, file_);
  if (!made) return made.error();
  parts_.regexes.push_back(std::move(*made));
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
  return add_regex(text->get<std::string>());
}

Result<void> Reader::read_model(const json& model) {
  if (const json* type = member(model, "type"); type != nullptr && *type != "BPE")
    return refuse("model " + type->dump());
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const json* affix = member(model, key); affix != nullptr && *affix != "")
      return refuse(std::string("model.") + key + " " + affix->dump());
  // Random merges would make encoding depend on a seed.
  if (const json* dropout = member(model, "dropout"); dropout != nullptr && *dropout != 0)
    return refuse("model.dropout " + dropout->dump());
  if (flag(model, "byte_fallback", false)) return refuse("model.byte_fallback");
  if (Result<void> done = read_vocabulary(model); !done) return done;
  if (Result<void> done = read_unknown(model); !done) return done;
  if (parts_.add_prefix_space && parts_.byte_ids[' '] == TokenizerParts::kNoToken)
    return fail("pre_tokenizer adds a space, which model.vocab does not have");
  if (Result<void> done = read_merges(model); !done) return done;
  if (flag(model, "ignore_merges", false))
    for (const auto& [token, id] : vocabulary_) parts_.whole_words.emplace(parts_.bytes[id], id);
  return {};
}

// The bytes that a vocabulary entry stands for. An entry with a character outside ByteLevel's
// alphabet, such as an added token that is also in the vocabulary, stands for its own text.
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
  // The symbols that merging starts from: the tokens of single bytes.
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

Result<void> Reader::read_unknown(const json& model) {
  const json* token = member(model, "unk_token");
  if (token == nullptr) return {};
  const auto at = vocabulary_.find(token->is_string() ? token->get<std::string>() : "");
  if (at == vocabulary_.end())
    return fail("model.unk_token " + token->dump() + " is not in model.vocab");
  parts_.unknown = at->second;
  parts_.fuse_unknown = flag(model, "fuse_unk", false);
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
  // cut_at_added() wants the longest first; equal lengths keep the file's order.
  std::stable_sort(parts_.added.begin(), parts_.added.end(), [](const auto& a, const auto& b) {
    return a.pattern.size() > b.pattern.size();
  });
  return {};
}

Result<void> Reader::read_added_token(const json& token) {
  const json* id = token.is_object() ? member(token, "id") : nullptr;
  const json* content = token.is_object() ? member(token, "content") : nullptr;
  if (id == nullptr || content == nullptr || !id->is_number_integer() || !content->is_string() ||
      *content == "")
    return fail("an entry of added_tokens has no id and content: " + token.dump());
  AddedToken entry{.content = content->get<std::string>()};
  entry.special = flag(token, "special", false);
  entry.normalized = flag(token, "normalized", !entry.special);
  entry.left_strip = flag(token, "lstrip", false);
  entry.right_strip = flag(token, "rstrip", false);
  entry.single_word = flag(token, "single_word", false);
  entry.pattern = entry.content;
  if (entry.normalized && parts_.nfc) entry.pattern = to_nfc(entry.content).value_or(entry.content);
  if (Result<void> placed = place_token(id->get<std::int64_t>(), entry.pattern); !placed)
    return placed;
  entry.id = id->get<std::int32_t>();
  parts_.special[static_cast<std::size_t>(entry.id)] = entry.special;
  parts_.added.push_back(std::move(entry));
  return {};
}

// A ByteLevel post_processor only changes offsets of tokens in the text, which are not kept here.
Result<void> Reader::read_post_processor(const json& step, int depth) {
  const std::string type = type_of(step);
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(step);
  const json* list = step.is_object() ? member(step, "processors") : nullptr;
  if (type != "Sequence" || list == nullptr || !list->is_array() || depth == kNestingMax)
    return refuse("post_processor " + type);
  for (const json& inner : *list)
    if (Result<void> done = read_post_processor(inner, depth + 1); !done) return done;
  return {};
}

// `single` is a list of {"SpecialToken": {"id": NAME}} around one {"Sequence": {"id": "A"}};
// special_tokens.NAME.ids are the ids that a name stands for.
Result<void> Reader::read_template(const json& step) {
  const json* single = member(step, "single");
  const json* tokens = member(step, "special_tokens");
  if (single == nullptr || !single->is_array())
    return fail("post_processor TemplateProcessing has no list 'single'");
  std::vector<std::int32_t> before, after;
  int texts = 0;
  for (const json& piece : *single) {
    if (piece.is_object() && piece.contains("Sequence") &&
        piece.value(json::json_pointer("/Sequence/id"), "A") == "A") {
      ++texts;
      continue;
    }
    const std::string name = piece.is_object() && piece.contains("SpecialToken")
                                 ? piece.value(json::json_pointer("/SpecialToken/id"), "")
                                 : "";
    const json* token =
        tokens != nullptr && tokens->is_object() ? member(*tokens, name.c_str()) : nullptr;
    const json* ids = token != nullptr && token->is_object() ? member(*token, "ids") : nullptr;
    if (ids == nullptr || !ids->is_array())
      return fail("post_processor TemplateProcessing has " + piece.dump() +
                  ", whose ids special_tokens does not give");
    for (const json& id : *ids) {
      if (!id.is_number_integer() || id < 0 || id >= parts_.bytes.size())
        return fail("post_processor TemplateProcessing has the token id " + id.dump() +
                    ", which neither model.vocab nor added_tokens has");
      (texts == 0 ? before : after).push_back(id.get<std::int32_t>());
    }
  }
  if (texts != 1)
    return refuse("post_processor TemplateProcessing whose 'single' has the text " +
                  std::to_string(texts) + " times");
  parts_.before.insert(parts_.before.begin(), before.begin(), before.end());
  parts_.after.insert(parts_.after.end(), after.begin(), after.end());
  return {};
}

}  // namespace

Result<void> read_tokenizer_json(const json& document, const std::string& file,
                                 TokenizerParts& parts) {
  return Reader(file, parts).read(document);
}

}  // namespace tandem::model
