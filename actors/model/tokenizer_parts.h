// The content of a tokenizer.json, checked and in the forms that encoding and decoding use.
// Internal to tokenizer.h; tokenizer_json.cc and tokenizer_steps.cc fill it from JSON, tokenizer.cc
// uses it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/model/added_tokens.h"
#include "actors/model/bpe.h"
#include "actors/model/normalizer.h"
#include "actors/model/pretokenizer.h"
#include "actors/model/unigram.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::model {

enum class Symbols : std::uint8_t {
  kBytes,       // ByteLevel: every byte has a symbol
  kCharacters,  // as SentencePiece: every character has a symbol, or tokens of its bytes
  kAscii,       // no pre_tokenizer but ByteLevel's decoder: as kCharacters, for ASCII alone
};

// The pre_tokenizer Metaspace: spaces become `mark`, which words may begin with.
struct Metaspace {
  enum class Prepend : std::uint8_t { kAlways, kFirst, kNever };
  std::string mark;                    // one character
  Prepend prepend = Prepend::kAlways;  // a mark before text that has none; kFirst: at offset 0 only
  bool split = true;                   // a word ends before each mark
};

// The decoder of kCharacters. That of kBytes is ByteLevel, and has no options.
struct DecoderRules {
  std::vector<NormalizerStep> replace;  // in the text of each token
  bool byte_fallback = false;           // a token named <0x0A> stands for that byte
  // The first token of a text loses the spaces that `first_without` became.
  std::string first_without;
  std::size_t strip = 0;  // so many spaces at the beginning of the whole text are left out
};

struct TokenizerParts {
  static constexpr std::int32_t kNoToken = -1;

  // The vocabulary. Tokens are kept as the bytes that they decode to, not as the file writes them.
  std::vector<std::string> bytes;  // by id; empty where no token has the id, or no text
  std::vector<bool> exists;        // by id
  std::vector<bool> special;       // by id
  std::unordered_map<std::int32_t, std::string> first_bytes;  // with DecoderRules::first_without

  Symbols symbols = Symbols::kAscii;
  // kBytes, kAscii: the symbols of bytes. kCharacters: the tokens that stand for the bytes of a
  // character without a symbol. kNoToken where the vocabulary has none.
  std::array<std::int32_t, 256> byte_ids{};
  std::unordered_map<std::uint32_t, std::int32_t> characters;  // kCharacters: their symbols
  MergeTable merges;
  std::optional<Unigram> unigram;                             // in place of symbols and merges
  std::unordered_map<std::string, std::int32_t> whole_words;  // only with ignore_merges
  AddedTokens added;

  std::vector<NormalizerStep> normalizer;
  bool whitespace_split = false;  // the pre_tokenizer WhitespaceSplit: white space is left out
  std::optional<Metaspace> metaspace;
  bool add_prefix_space = false;            // ByteLevel: text that begins without a space gets one
  std::optional<std::int32_t> unknown;      // unk_token: stands for what has no symbol
  bool fuse_unknown = false;                // one unk_token stands for several in a row
  std::vector<std::int32_t> before, after;  // tokens that the post_processor puts around a prompt
  std::vector<WordSplit> splits;            // each one cuts the pieces of the one before
  DecoderRules decoder;

  // The levels of encoding. Each appends to `ids`; `offset` is the place of its text in the whole
  // text, for errors and for Metaspace's kFirst.
  //
  // Text between added tokens that are not normalized.
  Result<void> encode_stretch(std::string_view text, std::size_t offset,
                              std::vector<std::int32_t>& ids) const;
  // Text without any added token.
  Result<void> encode_plain(std::string_view text, std::size_t offset,
                            std::vector<std::int32_t>& ids) const;
  // A piece between white space, where there is WhitespaceSplit, else all of encode_plain()'s text.
  Result<void> encode_piece(std::string_view text, std::size_t offset,
                            std::vector<std::int32_t>& ids) const;
  // One word, within which the model merges.
  Result<void> encode_word(std::string_view word, std::size_t offset,
                           std::vector<std::int32_t>& ids) const;

  // kAscii: encode() accepts ASCII alone, for which characters and bytes are the same.
  bool symbols_are_characters() const { return symbols == Symbols::kCharacters; }
  // Appends the symbols of `word`.
  Result<void> symbols_of(std::string_view word, std::size_t offset,
                          std::vector<std::int32_t>& ids) const;
};

// Fills `parts`, which is new. Errors name `file` and refuse every feature that is not supported by
// its name. After an error `parts` is not to be used.
Result<void> read_tokenizer_json(const nlohmann::json& document, const std::string& file,
                                 TokenizerParts& parts);

}  // namespace tandem::model
