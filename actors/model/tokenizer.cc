#include "actors/model/tokenizer.h"

#include <algorithm>
#include <array>

#include "actors/model/json_file.h"
#include "actors/model/nfc.h"
#include "actors/model/tokenizer_parts.h"
#include "actors/model/utf8.h"

namespace tandem::actors {
namespace {

constexpr std::uint64_t kTokenizerBytesMax = 256u << 20;

Error at_byte(const std::string& problem, std::size_t offset) {
  return Error{.message = "tokenizer: " + problem + " at byte " + std::to_string(offset)};
}

std::string byte_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x21 && byte <= 0x7E) return std::string("'") + c + "'";
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("0x") + kHex[byte >> 4] + kHex[byte & 15];
}

// A stretch of the text: plain, or one added token.
struct Stretch {
  std::size_t begin, size;
  const AddedToken* token;
};

// Cuts the text at the leftmost added token, the longest where several begin.
std::vector<Stretch> cut_at_added(std::string_view text, const std::vector<AddedToken>& added,
                                  bool normalized) {
  std::array<bool, 256> leads{};
  for (const AddedToken& token : added)
    if (token.normalized == normalized) leads[static_cast<unsigned char>(token.content[0])] = true;
  std::vector<Stretch> out;
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto token =
        leads[static_cast<unsigned char>(rest[0])]
            ? std::find_if(added.begin(), added.end(),
                           [&](const AddedToken& t) {
                             return t.normalized == normalized && rest.starts_with(t.content);
                           })
            : added.end();
    if (token == added.end()) {
      ++at;
      continue;
    }
    if (at > plain) out.push_back({plain, at - plain, nullptr});
    out.push_back({at, token->content.size(), &*token});
    at += token->content.size();
    plain = at;
  }
  if (text.size() > plain) out.push_back({plain, text.size() - plain, nullptr});
  return out;
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
  Result<std::string> text = read_text(file, kTokenizerBytesMax);
  if (!text) return text.error();
  return parse(*text, file.string());
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text) const {
  if (const auto offset = first_malformed_utf8(text))
    return at_byte("the text is not UTF-8: " + byte_text(text[*offset]), *offset);
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
  if (!whole_words.empty()) {
    if (const auto at = whole_words.find(std::string(word)); at != whole_words.end()) {
      ids.push_back(at->second);
      return {};
    }
  }
  std::vector<std::int32_t> merged;
  merged.reserve(word.size());
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::int32_t id = byte_ids[static_cast<unsigned char>(word[i])];
    if (id == kNoToken)
      return at_byte("the vocabulary cannot encode " + byte_text(word[i]), offset + i);
    merged.push_back(id);
  }
  merges.apply(merged);
  ids.insert(ids.end(), merged.begin(), merged.end());
  return {};
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, SpecialTokens special) const {
  std::string text;
  for (const std::int32_t id : ids)
    if (special == SpecialTokens::kKeep || !is_special(id)) text += bytes_of(id);
  return text;
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

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  for (const AddedToken& added : parts_->added)
    if (added.content == token) return added.id;
  return std::nullopt;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, SpecialTokens special)
    : tokenizer_(&tokenizer), special_(special) {}

std::string StreamDecoder::push(std::int32_t id) {
  std::string piece = std::move(held_) + tokenizer_->decode({&id, 1}, special_);
  const std::size_t whole = piece.size() - unfinished_utf8(piece);
  held_ = piece.substr(whole);
  piece.resize(whole);
  return piece;
}

std::string StreamDecoder::finish() { return std::exchange(held_, {}); }

}  // namespace tandem::actors
