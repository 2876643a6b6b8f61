// A byte-level BPE tokenizer, from the `tokenizer.json` of the Hugging Face `tokenizers` library.
//
// Text is cut at added tokens, then by the pre-tokenizer into words; the bytes of a word are merged
// by rank. Supported are the features of GPT-2, Llama 3, Qwen2, Qwen2.5, Qwen3 and SmolLM: model
// BPE (merges as "a b" or ["a", "b"], ignore_merges, unk_token); normalizer null or NFC (nfc.h);
// pre_tokenizer null, Digits, Split by a known regex and ByteLevel, alone or in a Sequence that
// ByteLevel ends; added tokens with lstrip, rstrip, single_word and normalized; post_processor
// null, ByteLevel, TemplateProcessing, or a Sequence of these; decoder ByteLevel. Anything else is
// refused by name.
//
// Ids and text are those of the `tokenizers` library (tests/golden/tokenizers) with three
// exceptions: encode_prompt adds no second BOS, an added token never has ByteLevel's stand-ins for
// bytes, and text with a byte that the vocabulary lacks is refused where the library drops the
// byte. Letters and digits are those of PCRE2's Unicode, which may be older than the library's.
//
// Invariants
//   TK-1  decode(encode(text)) == text for every text that encode accepts (in NFC where the
//         tokenizer normalizes; add_prefix_space adds a space, lstrip and rstrip take spaces away,
//         and unk_token loses the bytes that it stands for).
//   TK-2  StreamDecoder's pieces joined equal decode() of the same ids, and each piece is UTF-8.
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

namespace tandem::model {

enum class SpecialTokens : std::uint8_t { kKeep, kSkip };  // in decoded text

struct TokenizerParts;  // tokenizer_parts.h

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

  // The ids of a prompt: those of encode(), between the tokens that the post_processor puts around
  // a text (such as Llama 3's <|begin_of_text|>). Where the text itself begins with the leading
  // tokens, they are not added a second time.
  Result<std::vector<std::int32_t>> encode_prompt(std::string_view text) const;

  // The text of `ids`. The result is always UTF-8: other bytes, which occur where a completion
  // stops inside a character, become U+FFFD. Ids without a token decode to nothing; they exist
  // because vocab_size in config.json is often padded.
  std::string decode(std::span<const std::int32_t> ids, SpecialTokens special) const;
  std::string_view bytes_of(std::int32_t id) const;  // not always UTF-8

  std::int32_t vocab_size() const;  // highest id + 1, added tokens included
  bool is_special(std::int32_t id) const;

 private:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

  std::unique_ptr<const TokenizerParts> parts_;
};

// Decodes a stream of ids piece by piece, holding back the bytes of an unfinished character (TK-2).
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, SpecialTokens special);  // borrows the tokenizer
  std::string push(std::int32_t id);
  // Returns the bytes that are still held back, as U+FFFD. The decoder is then as new.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  SpecialTokens special_;
  std::string held_;  // at most three bytes
};

}  // namespace tandem::model
