// Encoding goes through levels, each of which cuts text into smaller pieces: added tokens that are
// looked for in raw text (encode), normalization and added tokens that are looked for in normalized
// text (encode_stretch), the pre-tokenizer's words (encode_plain), and the model within one word
// (encode_word). The order is that of the reference and cannot be changed: NFC, for example, must
// not see the text of an added token that is not normalized. Offsets in the caller's text are
// passed down only for error messages and for Metaspace.
#include "actors/model/tokenizer.h"

#include <algorithm>

#include "actors/model/json_file.h"
#include "actors/model/model_directory.h"
#include "actors/model/tokenizer_parts.h"
#include "actors/model/utf8.h"
#include "runtime/base/file.h"

namespace tandem::model {
namespace {

// Published files have up to some tens of MB.
constexpr std::uint64_t kTokenizerBytesMax = 256u << 20;

Error at_byte(const std::string& problem, std::size_t offset) {
  return Error{.message = "tokenizer: " + problem + " at byte " + std::to_string(offset)};
}

// A byte for an error: the character if it prints, else its value.
std::string byte_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x21 && byte <= 0x7E) return std::string("'") + c + "'";
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("0x") + kHex[byte >> 4] + kHex[byte & 15];
}

// The error for a tokenizer.json that cannot be read. Where the tokenizer is there in another form,
// the error says how to convert it.
Error with_other_form(Error error, const std::filesystem::path& file) {
  const std::filesystem::path directory = file.parent_path();
  const auto other = other_tokenizer(directory);
  if (!other) return error;
  return Error{.message = "there is no " + file.filename().string() +
                          ", and the tokenizer is here in a form that Tandem does not read",
               .where = other->string(),
               .help =
                   "write it anew: python3 -c \"from transformers import AutoTokenizer as T; "
                   "T.from_pretrained('" +
                   directory.string() + "').save_pretrained('" + directory.string() +
                   "')\", which needs the packages transformers, sentencepiece and protobuf"};
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::parse(std::string_view text, const std::string& file) {
  Result<nlohmann::json> document = parse_json(text, file);
  if (!document) return document.error();
  auto parts = std::make_unique<TokenizerParts>();
  if (Result<void> read = read_tokenizer_json(*document, file, *parts); !read) return read.error();
  return Tokenizer(std::move(parts));
}

Result<Tokenizer> Tokenizer::read(const std::filesystem::path& file) {
  Result<std::string> text = read_file(file, kTokenizerBytesMax);
  if (!text) return with_other_form(text.error(), file);
  return parse(*text, file.string());
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text) const {
  if (const auto offset = first_malformed_utf8(text))
    return at_byte("the text is not UTF-8: " + byte_text(text[*offset]), *offset);
  // Without ByteLevel the library's symbols are characters, and here they are bytes. For ASCII
  // these are the same.
  if (parts_->symbols == Symbols::kAscii) {
    const auto at = std::find_if(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
    if (at != text.end())
      return at_byte("without a pre_tokenizer only ASCII is supported; other text begins",
                     static_cast<std::size_t>(at - text.begin()));
  }
  std::vector<std::int32_t> ids;
  for (const Stretch& stretch : parts_->added.cut(text, /*normalized=*/false)) {
    if (stretch.token != nullptr) {
      ids.push_back(stretch.token->id);
      continue;
    }
    const std::string_view plain = text.substr(stretch.begin, stretch.size);
    if (Result<void> done = parts_->encode_stretch(plain, stretch.begin, ids); !done)
      return done.error();
  }
  return ids;
}

Result<std::vector<std::int32_t>> Tokenizer::encode_prompt(std::string_view text) const {
  Result<std::vector<std::int32_t>> ids = encode(text);
  if (!ids) return ids;
  const std::vector<std::int32_t>&before = parts_->before, &after = parts_->after;
  const bool has_them =
      ids->size() >= before.size() && std::equal(before.begin(), before.end(), ids->begin());
  if (!has_them) ids->insert(ids->begin(), before.begin(), before.end());
  ids->insert(ids->end(), after.begin(), after.end());
  return ids;
}

Result<void> TokenizerParts::encode_stretch(std::string_view text, std::size_t offset,
                                            std::vector<std::int32_t>& ids) const {
  const std::optional<std::string> changed = normalize(text, normalizer);
  if (changed) text = *changed;
  for (const Stretch& stretch : added.cut(text, /*normalized=*/true)) {
    if (stretch.token != nullptr) {
      ids.push_back(stretch.token->id);
      continue;
    }
    // In text that a step has changed, an error's byte is that of the changed text.
    const Result<void> done =
        encode_plain(text.substr(stretch.begin, stretch.size), offset + stretch.begin, ids);
    if (!done) return done;
  }
  return {};
}

namespace {

// `text` with marks for spaces. A word ends before each mark if `metaspace.split`.
std::string marked(std::string_view text, std::size_t offset, const Metaspace& metaspace) {
  std::string out = replace_all(text, " ", metaspace.mark);
  const bool prepend = metaspace.prepend == Metaspace::Prepend::kAlways ||
                       (metaspace.prepend == Metaspace::Prepend::kFirst && offset == 0);
  if (prepend && !out.starts_with(metaspace.mark)) out.insert(0, metaspace.mark);
  return out;
}

std::vector<std::string_view> cut_before(std::string_view text, std::string_view mark) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(mark, 1), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::vector<std::string_view> pieces_between_white_space(std::string_view text) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    if (!is_white_space(next_code_point(text, at))) continue;
    if (end > begin) pieces.push_back(text.substr(begin, end - begin));
    begin = at;
  }
  if (begin < text.size()) pieces.push_back(text.substr(begin));
  return pieces;
}

}  // namespace

Result<void> TokenizerParts::encode_plain(std::string_view text, std::size_t offset,
                                          std::vector<std::int32_t>& ids) const {
  // `text` is not empty: AddedTokens::cut() gives no empty stretch.
  if (!whitespace_split) return encode_piece(text, offset, ids);
  for (const std::string_view piece : pieces_between_white_space(text)) {
    const auto at = static_cast<std::size_t>(piece.data() - text.data());
    if (Result<void> done = encode_piece(piece, offset + at, ids); !done) return done;
  }
  return {};
}

Result<void> TokenizerParts::encode_piece(std::string_view text, std::size_t offset,
                                          std::vector<std::int32_t>& ids) const {
  std::string changed;
  if (metaspace) {
    changed = marked(text, offset, *metaspace);
  } else if (add_prefix_space && text[0] != ' ') {
    changed = " " + std::string(text);
    offset -= 1;  // offsets count in the text as given; the space itself always has a token
  }
  if (!changed.empty()) text = changed;
  std::vector<std::string_view> words{text};
  if (metaspace && metaspace->split) words = cut_before(text, metaspace->mark);
  for (const WordSplit& split : splits) {
    Result<std::vector<std::string_view>> cut = split.split(words);
    if (!cut) return cut.error();
    words = *std::move(cut);
  }
  for (const std::string_view word : words) {
    const auto at = static_cast<std::size_t>(word.data() - text.data());
    if (Result<void> done = encode_word(word, offset + at, ids); !done) return done;
  }
  return {};
}

Result<void> TokenizerParts::encode_word(std::string_view word, std::size_t offset,
                                         std::vector<std::int32_t>& ids) const {
  if (unigram) {
    if (const auto at = unigram->encode(word, ids))
      return at_byte("the vocabulary cannot encode " + byte_text(word[*at]), offset + *at);
    return {};
  }
  // ignore_merges: a word that is itself a token is not built from merges.
  if (!whole_words.empty()) {
    if (const auto at = whole_words.find(std::string(word)); at != whole_words.end()) {
      ids.push_back(at->second);
      return {};
    }
  }
  std::vector<std::int32_t> merged;
  merged.reserve(word.size());
  if (Result<void> done = symbols_of(word, offset, merged); !done) return done;
  merges.apply(merged);
  ids.insert(ids.end(), merged.begin(), merged.end());
  return {};
}

Result<void> TokenizerParts::symbols_of(std::string_view word, std::size_t offset,
                                        std::vector<std::int32_t>& ids) const {
  const auto byte_id = [&](std::size_t at) {
    return byte_ids[static_cast<unsigned char>(word[at])];
  };
  bool after_unknown = false;  // only neighbours are fused
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    std::int32_t id = kNoToken;
    if (symbols_are_characters()) {
      const auto found = characters.find(next_code_point(word, at));
      if (found != characters.end()) id = found->second;
    } else {
      id = byte_id(at++);
    }
    if (id != kNoToken) {
      ids.push_back(id);
    } else if (symbols_are_characters() && byte_id(begin) != kNoToken) {  // byte_fallback
      for (std::size_t i = begin; i < at; ++i) ids.push_back(byte_id(i));
    } else if (!unknown) {
      return at_byte("the vocabulary cannot encode " + byte_text(word[begin]), offset + begin);
    } else {
      if (!after_unknown || !fuse_unknown) ids.push_back(*unknown);
      after_unknown = true;
      continue;
    }
    after_unknown = false;
  }
  return {};
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, SpecialTokens special) const {
  std::string bytes;
  Detokenizer detokenizer(*this, special);
  for (const std::int32_t id : ids) bytes += detokenizer.next(id);
  return replace_malformed_utf8(bytes);
}

std::int32_t Tokenizer::vocab_size() const {
  return static_cast<std::int32_t>(parts_->bytes.size());
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && id < vocab_size() && parts_->special[static_cast<std::size_t>(id)];
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, SpecialTokens special)
    : parts_(tokenizer.parts_.get()), special_(special), strip_(parts_->decoder.strip) {}

std::string_view Detokenizer::next(std::int32_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (id < 0 || index >= parts_->bytes.size() || !parts_->exists[index]) return {};
  if (special_ == SpecialTokens::kSkip && parts_->special[index]) return {};
  std::string_view bytes = parts_->bytes[index];
  if (std::exchange(first_, false))
    if (const auto at = parts_->first_bytes.find(id); at != parts_->first_bytes.end())
      bytes = at->second;
  for (; strip_ > 0 && bytes.starts_with(' '); --strip_) bytes.remove_prefix(1);
  if (!bytes.empty()) strip_ = 0;
  return bytes;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, SpecialTokens special)
    : tokenizer_(&tokenizer), special_(special), bytes_(tokenizer, special) {}

std::string StreamDecoder::push(std::int32_t id) {
  std::string bytes = std::move(held_);
  bytes += bytes_.next(id);
  const std::size_t whole = bytes.size() - unfinished_utf8(bytes);
  held_ = bytes.substr(whole);
  bytes.resize(whole);
  return replace_malformed_utf8(bytes);
}

std::string StreamDecoder::finish() {
  bytes_ = Detokenizer(*tokenizer_, special_);
  return replace_malformed_utf8(std::exchange(held_, {}));
}

}  // namespace tandem::model
