// Reads a tokenizer.json into TokenizerParts: the model and the added tokens here, all other
// sections in tokenizer_steps.cc. Every feature that changes tokens and that tokenizer.cc does not
// implement is refused: a tokenizer that is almost right would train a model on wrong ids without
// any error.
//
// The sections depend on each other in one order: the decoder and the pre_tokenizer say whether
// symbols are bytes or characters, which the vocabulary needs; merges, added tokens and the
// post_processor then refer to ids of the vocabulary.
//
// ByteLevel writes every byte as a printable character: bytes that print as themselves, all others
// as U+0100 and the following code points, in order (bytes_to_unicode of GPT-2). SentencePiece
// writes a character as itself, a space as U+2581, and the byte 0x0A as the token <0x0A>.
#include <algorithm>
#include <set>

#include "actors/model/tokenizer_parts.h"
#include "actors/model/tokenizer_steps.h"
#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

using nlohmann::json;

constexpr std::int64_t kTokenIdMax = 1 << 24;  // bounds the table by id, as in model_config.cc
constexpr const char* kSpaceMark = "\u2581";   // SentencePiece's
constexpr std::size_t kTokenBytesMax = 16 << 10;

// The byte that a token named <0x0A> stands for.
std::optional<unsigned char> byte_of_name(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : token.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9', upper = c >= 'A' && c <= 'F',
               lower = c >= 'a' && c <= 'f';
    if (!digit && !upper && !lower) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit   ? c - '0'
                                               : upper ? c - 'A' + 10
                                                       : c - 'a' + 10);
  }
  return static_cast<unsigned char>(value);
}

std::string name_of_byte(unsigned byte) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  return std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">";
}

class Reader {
 public:
  Reader(const std::string& file, TokenizerParts& parts);

  Result<void> read(const json& document);

 private:
  Result<void> read_model(const json& model);
  Result<void> read_bpe(const json& model);
  Result<void> read_vocabulary(const json& model);
  Result<void> read_pieces(const json& model);
  Result<void> read_merges(const json& model);
  Result<void> read_unknown(const json& model);
  Result<void> read_byte_fallback();
  Result<void> read_added_tokens(const json& document);
  Result<void> read_added_token(const json& token, std::vector<AddedToken>& tokens);

  void read_symbols();
  std::string bytes_of_symbols(const std::string& token) const;
  Result<void> place_token(std::int64_t id, const std::string& token);

  TokenizerFile file_;
  TokenizerParts& parts_;
  std::array<std::uint32_t, 256> symbol_of_byte_;  // ByteLevel's printable stand-ins
  std::unordered_map<std::uint32_t, unsigned char> byte_of_symbol_;
  std::unordered_map<std::string, std::int32_t> vocabulary_;  // by the token as the file writes it
};

Reader::Reader(const std::string& file, TokenizerParts& parts) : file_{file}, parts_(parts) {
  std::uint32_t stand_in = 0x100;  // for bytes that do not print, in order
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
                        (byte >= 0xAE && byte <= 0xFF);
    symbol_of_byte_[byte] = prints ? byte : stand_in++;
    byte_of_symbol_[symbol_of_byte_[byte]] = static_cast<unsigned char>(byte);
  }
}

Result<void> Reader::read(const json& document) {
  if (!document.is_object()) return file_.fail("tokenizer.json must be a JSON object");
  const json* model = member(document, "model");
  if (model == nullptr || !model->is_object()) return file_.fail("key 'model' is missing");
  // Without a decoder the library puts spaces between tokens.
  const json* decoder = member(document, "decoder");
  if (decoder == nullptr) return file_.refuse("a missing decoder");
  if (Result<void> done = read_decoder(*decoder, file_, parts_); !done) return done;
  if (const json* normalizer = member(document, "normalizer"))
    if (Result<void> done = read_normalizer(*normalizer, file_, parts_); !done) return done;
  if (const json* pre = member(document, "pre_tokenizer")) {
    if (Result<void> done = read_pre_tokenizer(*pre, file_, parts_); !done) return done;
    if (parts_.symbols == Symbols::kAscii)
      return file_.refuse("decoder ByteLevel with a pre_tokenizer without ByteLevel");
  }
  if (Result<void> done = read_model(*model); !done) return done;
  if (Result<void> done = read_added_tokens(document); !done) return done;
  if (const json* post = member(document, "post_processor"))
    return read_post_processor(*post, file_, parts_);
  return {};
}

Result<void> Reader::read_model(const json& model) {
  const json* type = member(model, "type");
  parts_.byte_ids.fill(TokenizerParts::kNoToken);
  if (type == nullptr || *type == "BPE") return read_bpe(model);
  if (*type != "Unigram") return file_.refuse("model " + type->dump());
  if (parts_.symbols != Symbols::kCharacters)
    return file_.refuse("model Unigram with the decoder ByteLevel");
  return read_pieces(model);
}

Result<void> Reader::read_bpe(const json& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const json* affix = member(model, key); affix != nullptr && *affix != json(""))
      return file_.refuse(std::string("model.") + key + " " + affix->dump());
  // Random merges would make encoding depend on a seed.
  if (const json* dropout = member(model, "dropout"); dropout != nullptr && *dropout != 0)
    return file_.refuse("model.dropout " + dropout->dump());
  const bool falls_back = flag(model, "byte_fallback", false);
  if (falls_back && parts_.symbols != Symbols::kCharacters)
    return file_.refuse("model.byte_fallback with the decoder ByteLevel");
  if (Result<void> done = read_vocabulary(model); !done) return done;
  read_symbols();
  if (falls_back)
    if (Result<void> done = read_byte_fallback(); !done) return done;
  if (Result<void> done = read_unknown(model); !done) return done;
  if (parts_.add_prefix_space && parts_.byte_ids[' '] == TokenizerParts::kNoToken)
    return file_.fail("pre_tokenizer adds a space, which model.vocab does not have");
  if (Result<void> done = read_merges(model); !done) return done;
  if (flag(model, "ignore_merges", false))
    for (const auto& [token, id] : vocabulary_)
      parts_.whole_words.emplace(
          parts_.symbols == Symbols::kBytes ? parts_.bytes[static_cast<std::size_t>(id)] : token,
          id);
  return {};
}

// The bytes that a vocabulary entry of ByteLevel stands for. An entry with a character outside its
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

// Enters a token with the text that it decodes to: `token` itself, or what the decoder's rules make
// of it.
Result<void> Reader::place_token(std::int64_t id, const std::string& token) {
  if (id < 0 || id > kTokenIdMax)
    return file_.fail("token id " + std::to_string(id) + " is out of range");
  const auto index = static_cast<std::size_t>(id);
  if (index >= parts_.bytes.size()) {
    parts_.bytes.resize(index + 1);
    parts_.special.resize(index + 1);
    parts_.exists.resize(index + 1);
  }
  parts_.exists[index] = true;
  parts_.first_bytes.erase(static_cast<std::int32_t>(id));
  const DecoderRules& rules = parts_.decoder;
  parts_.bytes[index] = normalize(token, rules.replace).value_or(token);
  if (rules.byte_fallback)
    if (const auto byte = byte_of_name(parts_.bytes[index]))
      parts_.bytes[index] = static_cast<char>(*byte);
  if (!rules.first_without.empty() && token.find(rules.first_without) != token.npos) {
    std::vector<NormalizerStep> first = rules.replace;
    first.back().content.clear();  // Metaspace is the last one
    parts_.first_bytes[static_cast<std::int32_t>(id)] = normalize(token, first).value_or(token);
  }
  return {};
}

Result<void> Reader::read_vocabulary(const json& model) {
  const json* vocab = member(model, "vocab");
  if (vocab == nullptr || !vocab->is_object())
    return file_.fail("key 'model.vocab' must be an object");
  std::set<std::int64_t> ids;
  for (const auto& [token, value] : vocab->items()) {
    if (!value.is_number_integer() || token.empty() || token.size() > kTokenBytesMax)
      return file_.fail("entry '" + token + "' of model.vocab is not a token with an integer id");
    const auto id = value.get<std::int64_t>();
    if (!ids.insert(id).second)
      return file_.fail("id " + std::to_string(id) + " occurs twice in model.vocab");
    const bool characters = parts_.symbols == Symbols::kCharacters;
    if (Result<void> placed = place_token(id, characters ? token : bytes_of_symbols(token));
        !placed)
      return placed;
    vocabulary_.emplace(token, static_cast<std::int32_t>(id));
  }
  return {};
}

// The symbols that merging starts from: the tokens of single bytes, or of single characters.
void Reader::read_symbols() {
  if (parts_.symbols == Symbols::kCharacters) {
    for (const auto& [token, id] : vocabulary_) {
      std::size_t at = 0;
      const std::uint32_t c = next_code_point(token, at);
      if (at == token.size()) parts_.characters.emplace(c, id);
    }
    return;
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    if (parts_.symbols == Symbols::kAscii && byte >= 0x80) break;
    std::string symbol;
    append_utf8(symbol, parts_.symbols == Symbols::kBytes ? symbol_of_byte_[byte] : byte);
    const auto at = vocabulary_.find(symbol);
    if (at == vocabulary_.end()) continue;
    parts_.byte_ids[byte] = at->second;
    parts_.bytes[static_cast<std::size_t>(at->second)] = static_cast<char>(byte);
  }
}

// With some of these tokens alone the library's order of unknown characters is not the text's.
Result<void> Reader::read_byte_fallback() {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto at = vocabulary_.find(name_of_byte(byte));
    if (at == vocabulary_.end())
      return file_.fail("model.byte_fallback needs the token " + name_of_byte(byte) +
                        ", which model.vocab does not have");
    parts_.byte_ids[byte] = at->second;
  }
  return {};
}

// The vocabulary of Unigram: a list of [piece, score].
Result<void> Reader::read_pieces(const json& model) {
  const json* vocab = member(model, "vocab");
  if (vocab == nullptr || !vocab->is_array() || vocab->empty())
    return file_.fail("key 'model.vocab' must be a list of pieces with their scores");
  Unigram::Vocabulary vocabulary;
  for (const json& entry : *vocab) {
    const bool good = entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
                      entry[0] != json("") && entry[1].is_number();
    if (!good)
      return file_.fail("entry " + std::to_string(vocabulary.pieces.size()) +
                        " of model.vocab is not a piece with a score: " + entry.dump());
    Unigram::Piece piece{entry[0].get<std::string>(), entry[1].get<double>()};
    if (piece.text.size() > kTokenBytesMax) return file_.fail("a piece of model.vocab is too long");
    const auto id = static_cast<std::int32_t>(vocabulary.pieces.size());
    if (Result<void> placed = place_token(id, piece.text); !placed) return placed;
    vocabulary_[piece.text] = id;
    vocabulary.pieces.push_back(std::move(piece));
  }
  if (const json* unknown = member(model, "unk_id")) {
    if (!unknown->is_number_unsigned() || *unknown >= vocabulary.pieces.size())
      return file_.fail("model.unk_id " + unknown->dump() + " is not in model.vocab");
    vocabulary.unknown = unknown->get<std::int32_t>();
  }
  if (flag(model, "byte_fallback", false))
    if (Result<void> done = read_byte_fallback(); !done) return done;
  vocabulary.bytes = parts_.byte_ids;
  parts_.unigram.emplace(std::move(vocabulary));
  return {};
}

Result<void> Reader::read_unknown(const json& model) {
  const json* token = member(model, "unk_token");
  if (token == nullptr) return {};
  const auto at = vocabulary_.find(token->is_string() ? token->get<std::string>() : "");
  if (at == vocabulary_.end())
    return file_.fail("model.unk_token " + token->dump() + " is not in model.vocab");
  parts_.unknown = at->second;
  parts_.fuse_unknown = flag(model, "fuse_unk", false);
  return {};
}

Result<void> Reader::read_merges(const json& model) {
  const json* merges = member(model, "merges");
  if (merges == nullptr) return {};
  if (!merges->is_array()) return file_.fail("key 'model.merges' must be a list");
  std::int32_t rank = 0;
  bool joins_words = false;  // some merge puts a space behind other text
  for (const json& merge : *merges) {
    const auto bad = [&] {
      return file_.fail("merge " + std::to_string(rank) + " of model.merges, " + merge.dump() +
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
    joins_words = joins_words || (right.starts_with(kSpaceMark) && !left.ends_with(kSpaceMark));
  }
  const auto mark = vocabulary_.find(kSpaceMark);
  if (parts_.symbols == Symbols::kCharacters && !joins_words && mark != vocabulary_.end())
    parts_.merges.never_joins_left(mark->second);
  return {};
}

Result<void> Reader::read_added_tokens(const json& document) {
  const json* added = member(document, "added_tokens");
  if (added == nullptr) return {};
  if (!added->is_array()) return file_.fail("key 'added_tokens' must be a list");
  std::vector<AddedToken> tokens;
  for (const json& token : *added)
    if (Result<void> done = read_added_token(token, tokens); !done) return done;
  parts_.added = AddedTokens(std::move(tokens));
  return {};
}

Result<void> Reader::read_added_token(const json& token, std::vector<AddedToken>& tokens) {
  const json* id = token.is_object() ? member(token, "id") : nullptr;
  const json* content = token.is_object() ? member(token, "content") : nullptr;
  if (id == nullptr || content == nullptr || !id->is_number_integer() || !content->is_string() ||
      *content == json(""))
    return file_.fail("an entry of added_tokens has no id and content: " + token.dump());
  AddedToken entry{.content = content->get<std::string>()};
  entry.special = flag(token, "special", false);
  entry.normalized = flag(token, "normalized", !entry.special);
  entry.left_strip = flag(token, "lstrip", false);
  entry.right_strip = flag(token, "rstrip", false);
  entry.single_word = flag(token, "single_word", false);
  entry.pattern = entry.content;
  if (entry.normalized)
    entry.pattern = normalize(entry.content, parts_.normalizer).value_or(entry.content);
  if (Result<void> placed = place_token(id->get<std::int64_t>(), entry.pattern); !placed)
    return placed;
  entry.id = id->get<std::int32_t>();
  parts_.special[static_cast<std::size_t>(entry.id)] = entry.special;
  tokens.push_back(std::move(entry));
  return {};
}

}  // namespace

Result<void> read_tokenizer_json(const json& document, const std::string& file,
                                 TokenizerParts& parts) {
  return Reader(file, parts).read(document);
}

}  // namespace tandem::model
