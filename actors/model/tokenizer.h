// A byte-level BPE tokenizer, from the `tokenizer.json` of the Hugging Face `tokenizers` library.
//
// Text is cut at added tokens, then by the pre-tokenizer's regex into words; the bytes of a word
// are merged by rank. Supported: model BPE (merges as "a b" or ["a", "b"], ignore_merges),
// normalizer null or NFC, pre_tokenizer null, ByteLevel, or Sequence[Split, …, ByteLevel], decoder
// ByteLevel. NFC is Unicode 15's (nfc.h). A post_processor's template (bos) is not applied: a
// prompt is exactly its text. Anything else is refused by name.
//
// Invariants
//   TK-1  decode(encode(text)) == text for every text that encode accepts (add_prefix_space, where
//         a tokenizer asks for it, adds its space; under NFC it is the text in NFC).
//   TK-2  StreamDecoder's pieces joined equal decode() of the same ids, and no piece ends inside a
//         UTF-8 character unless the ids end there.
//
// Immutable after construction; its const members may be called from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::actors {

enum class SpecialTokens : std::uint8_t { kKeep, kSkip };  // in decoded text

struct TokenizerParts;  // the vocabulary in the forms that are used

class Tokenizer {
 public:
  // `text` is the content of tokenizer.json; `file` names it in errors.
  static Result<Tokenizer> parse(std::string_view text, const std::string& file);
  static Result<Tokenizer> read(const std::filesystem::path& file);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Added tokens in the text (such as <|im_end|>) become their ids. Errors name the byte offset: a
  // byte or character that the vocabulary cannot encode, text that is not UTF-8.
  Result<std::vector<std::int32_t>> encode(std::string_view text) const;

  // The bytes of `ids`; not always UTF-8, as a completion may stop inside a character. Ids that
  // name no token (vocab_size in config.json is often padded) decode to nothing.
  std::string decode(std::span<const std::int32_t> ids, SpecialTokens special) const;
  std::string_view bytes_of(std::int32_t id) const;

  std::int32_t vocab_size() const;  // highest id + 1, added tokens included
  bool is_special(std::int32_t id) const;
  std::optional<std::int32_t> id_of(
      std::string_view token) const;  // an added token's id, by its text

 private:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

  std::unique_ptr<const TokenizerParts> parts_;
};

// Decodes a stream of ids piece by piece, holding back the bytes of an unfinished character (TK-2).
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, SpecialTokens special);  // borrows the tokenizer
  std::string push(std::int32_t id);
  std::string finish();  // what is still held back; the decoder is as new afterwards

 private:
  const Tokenizer* tokenizer_;
  SpecialTokens special_;
  std::string held_;  // at most three bytes
};

}  // namespace tandem::actors
