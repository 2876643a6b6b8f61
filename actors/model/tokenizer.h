// Text to token ids and back, by the `tokenizer.json` of the Hugging Face `tokenizers` library.
//
// Text is cut at added tokens, then normalized, cut by the pre-tokenizer into words, and each word
// is tokenized by the model. Supported are these features; anything else is refused by name:
//
//   model           BPE (merges as "a b" or ["a", "b"], ignore_merges, unk_token, fuse_unk,
//                   byte_fallback) over bytes or characters; Unigram (unk_id, byte_fallback)
//   normalizer      NFC (nfc.h), Precompiled (charsmap.h), Prepend, Strip, Replace of a String or
//                   of the expressions that transformers writes for SentencePiece's spaces
//   pre_tokenizer   ByteLevel as the last step, Split (String, or Regex as regex_dialect.h has it),
//                   Digits, Metaspace as the first step or behind WhitespaceSplit
//   post_processor  ByteLevel, TemplateProcessing
//   decoder         ByteLevel; Replace, Metaspace, ByteFallback, Fuse, Strip of leading spaces
//   added tokens    lstrip, rstrip, single_word, normalized, special
//
// The sections `truncation` and `padding` are not followed, as in transformers.
//
// These are the tokenizers of GPT-2, Llama 2 and 3, Mistral, Qwen, SmolLM, DeepSeek, Phi-3, Gemma
// and of others that are made alike; docs/guides/pretrained.md has the list that is tested.
//
// Ids and text are those of the `tokenizers` library (tests/golden/tokenizers) with four
// exceptions: encode_prompt adds no second BOS; an added token never has ByteLevel's stand-ins for
// bytes; text that has no token is refused where the library drops it; and where tokens of single
// bytes (byte_fallback) in a row are no UTF-8, the good characters among them are kept, of which
// the library makes U+FFFD too. Letters and digits are those of PCRE2's Unicode, which may be older
// than the library's.
//
// Invariants
//   TK-1  decode(encode(text)) == text for every text that encode accepts (in NFC where the
//         tokenizer normalizes; add_prefix_space adds a space, lstrip and rstrip take spaces away,
//         unk_token loses what it stands for, and where spaces are written as U+2581 that character
//         becomes a space and text after an added token may get one; Precompiled, Strip,
//         WhitespaceSplit and Replace change the text as they say).
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
  std::int32_t vocab_size() const;  // highest id + 1, added tokens included
  bool is_special(std::int32_t id) const;

 private:
  friend class Detokenizer;
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

  std::unique_ptr<const TokenizerParts> parts_;
};

// Turns ids into bytes one by one. What an id stands for may depend on its place: some decoders
// take a space away at the beginning of a text.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, SpecialTokens special);  // borrows the tokenizer

  // The bytes that `id` adds to those of the ids before it; not always UTF-8. The view lasts as
  // long as the tokenizer.
  std::string_view next(std::int32_t id);

 private:
  const TokenizerParts* parts_;
  SpecialTokens special_;
  bool first_ = true;  // no token has come yet
  std::size_t strip_;  // so many spaces are left out if they come next
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
  Detokenizer bytes_;
  std::string held_;  // at most three bytes
};

}  // namespace tandem::model
