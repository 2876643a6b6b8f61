// Encoding goes through levels, each of which cuts text into smaller pieces: added tokens that are
// looked for in raw text (encode), NFC and added tokens that are looked for in normalized text
// (encode_stretch), the pre-tokenizer's words (encode_plain), and the merges of one word
// (encode_word). The order is that of the reference and cannot be changed: NFC, for example, must
// not see the text of an added token that is not normalized. Offsets in the caller's text are
// passed down only for error messages.
#include "actors/model/tokenizer.h"

#include <algorithm>

#include "actors/model/json_file.h"
#include "actors/model/nfc.h"
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
  if (!text) return text.error();
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
  for (const Stretch& stretch : cut_at_added(text, parts_->added, /*normalized=*/false)) {
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
  const std::optional<std::string> composed = nfc ? to_nfc(text) : std::nullopt;
  if (composed) text = *composed;
  for (const Stretch& stretch : cut_at_added(text, added, /*normalized=*/true)) {
    if (stretch.token != nullptr) {
      ids.push_back(stretch.token->id);
      continue;
    }
    // In text that NFC has changed, an error names the byte where that text begins.
    const std::size_t begin = composed ? offset : offset + stretch.begin;
    const Result<void> done = encode_plain(text.substr(stretch.begin, stretch.size), begin, ids);
    if (!done) return done;
  }
  return {};
}

Result<void> TokenizerParts::encode_plain(std::string_view text, std::size_t offset,
                                          std::vector<std::int32_t>& ids) const {
  // `text` is not empty: cut_at_added() gives no empty stretch.
  const std::string prefixed = add_prefix_space && text[0] != ' ' ? " " + std::string(text) : "";
  if (!prefixed.empty()) {
    text = prefixed;
    offset -= 1;  // offsets count in the text as given; the space itself always has a token
  }
  std::vector<std::string_view> words{text};
  for (const WordRegex& regex : regexes) {
    std::vector<std::string_view> cut;
    for (const std::string_view word : words)
      if (Result<void> done = regex.split(word, cut); !done) return done;
    words = std::move(cut);
  }
  for (const std::string_view word : words) {
    const auto at = static_cast<std::size_t>(word.data() - text.data());
    if (Result<void> done = encode_word(word, offset + at, ids); !done) return done;
  }
  return {};
}

Result<void> TokenizerParts::encode_word(std::string_view word, std::size_t offset,
                                         std::vector<std::int32_t>& ids) const {
  // ignore_merges: a word that is itself a token is not built from merges.
  if (!whole_words.empty()) {
    if (const auto at = whole_words.find(std::string(word)); at != whole_words.end()) {
      ids.push_back(at->second);
      return {};
    }
  }
  std::vector<std::int32_t> merged;
  merged.reserve(word.size());
  // Only neighbouring unknown bytes are fused.
  bool after_unknown = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::int32_t id = byte_ids[static_cast<unsigned char>(word[i])];
    if (id != kNoToken) {
      merged.push_back(id);
      after_unknown = false;
      continue;
    }
    if (!unknown) return at_byte("the vocabulary cannot encode " + byte_text(word[i]), offset + i);
    if (!after_unknown || !fuse_unknown) merged.push_back(*unknown);
    after_unknown = true;
  }
  merges.apply(merged);
  ids.insert(ids.end(), merged.begin(), merged.end());
  return {};
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, SpecialTokens special) const {
  std::string bytes;
  for (const std::int32_t id : ids)
    if (special == SpecialTokens::kKeep || !is_special(id)) bytes += bytes_of(id);
  return replace_malformed_utf8(bytes);
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return parts_->bytes[static_cast<std::size_t>(id)];
}

std::int32_t Tokenizer::vocab_size() const {
  return static_cast<std::int32_t>(parts_->bytes.size());
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && id < vocab_size() && parts_->special[static_cast<std::size_t>(id)];
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, SpecialTokens special)
    : tokenizer_(&tokenizer), special_(special) {}

std::string StreamDecoder::push(std::int32_t id) {
  std::string bytes = std::move(held_);
  if (special_ == SpecialTokens::kKeep || !tokenizer_->is_special(id))
    bytes += tokenizer_->bytes_of(id);
  const std::size_t whole = bytes.size() - unfinished_utf8(bytes);
  held_ = bytes.substr(whole);
  bytes.resize(whole);
  return replace_malformed_utf8(bytes);
}

std::string StreamDecoder::finish() { return replace_malformed_utf8(std::exchange(held_, {})); }

}  // namespace tandem::model
