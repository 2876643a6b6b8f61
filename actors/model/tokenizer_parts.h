// The content of a tokenizer.json, checked and in the forms that encoding and decoding use.
// Internal to tokenizer.h; tokenizer_json.cc fills it from JSON, tokenizer.cc uses it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/model/added_tokens.h"
#include "actors/model/bpe.h"
#include "actors/model/pretokenizer.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::model {

enum class Symbols : std::uint8_t {
  kBytes,  // ByteLevel: every byte has a symbol
  kAscii,  // no pre_tokenizer: each character is a symbol, and only ASCII is accepted
};

struct TokenizerParts {
  static constexpr std::int32_t kNoToken = -1;

  // The vocabulary. Tokens are kept as the bytes that they stand for, not as the printable
  // stand-ins of ByteLevel that the file has.
  std::vector<std::string> bytes;            // by id; empty where no token has the id
  std::vector<bool> special;                 // by id
  std::array<std::int32_t, 256> byte_ids{};  // the symbol of a byte, or kNoToken
  MergeTable merges;
  std::unordered_map<std::string, std::int32_t> whole_words;  // by bytes; only with ignore_merges
  std::vector<AddedToken> added;                              // longest first

  Symbols symbols = Symbols::kAscii;
  bool nfc = false;                         // text is brought into NFC first
  bool add_prefix_space = false;            // plain text that begins without a space gets one
  std::optional<std::int32_t> unknown;      // unk_token: stands for a byte without a symbol
  bool fuse_unknown = false;                // one unk_token stands for several such bytes in a row
  std::vector<std::int32_t> before, after;  // tokens that the post_processor puts around a prompt
  std::vector<WordRegex> regexes;           // each one cuts the pieces of the one before

  // The three levels of encoding. Each appends to `ids`; `offset` is the place of its text in the
  // whole text, for errors.
  //
  // Text between added tokens that are not normalized.
  Result<void> encode_stretch(std::string_view text, std::size_t offset,
                              std::vector<std::int32_t>& ids) const;
  // Text without any added token.
  Result<void> encode_plain(std::string_view text, std::size_t offset,
                            std::vector<std::int32_t>& ids) const;
  // One word, within which BPE merges.
  Result<void> encode_word(std::string_view word, std::size_t offset,
                           std::vector<std::int32_t>& ids) const;
};

// Fills `parts`, which is new. Errors name `file` and refuse every feature that is not supported by
// its name. After an error `parts` is not to be used.
Result<void> read_tokenizer_json(const nlohmann::json& document, const std::string& file,
                                 TokenizerParts& parts);

}  // namespace tandem::model
