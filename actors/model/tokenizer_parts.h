// What a tokenizer.json holds, checked and in the forms that encoding and decoding use. Internal to
// tokenizer.h; read from JSON by tokenizer_json.cc.
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
#include "actors/model/tokenizer.h"
#include "runtime/base/json.h"

namespace tandem::actors {

enum class Symbols : std::uint8_t {
  kBytes,  // ByteLevel: every byte has a symbol
  kAscii,  // no pre_tokenizer: a character is its own symbol, and only ASCII is accepted
};

struct TokenizerParts {
  static constexpr std::int32_t kNoToken = -1;

  std::vector<std::string> bytes;            // by id; empty where no token has the id
  std::vector<bool> special;                 // by id
  std::array<std::int32_t, 256> byte_ids{};  // the symbol of a byte, or kNoToken
  MergeTable merges;
  std::unordered_map<std::string, std::int32_t> whole_words;  // by bytes; only with ignore_merges
  std::vector<AddedToken> added;                              // longest first

  Symbols symbols = Symbols::kAscii;
  bool nfc = false;  // normalizer NFC
  bool add_prefix_space = false;
  std::optional<std::int32_t> unknown;      // unk_token: stands for a byte without a symbol
  bool fuse_unknown = false;                // one for several such bytes
  std::vector<std::int32_t> before, after;  // what the post_processor puts around a prompt
  std::vector<WordRegex> regexes;           // each cuts the pieces of the one before

  // Text between added tokens that are not normalized; `offset` is its place in the whole text.
  Result<void> encode_stretch(std::string_view text, std::size_t offset,
                              std::vector<std::int32_t>& ids) const;
  // Text without added tokens.
  Result<void> encode_plain(std::string_view text, std::size_t offset,
                            std::vector<std::int32_t>& ids) const;
  Result<void> encode_word(std::string_view word, std::size_t offset,
                           std::vector<std::int32_t>& ids) const;
};

// Fills `parts`; everything that is not supported is refused by its name.
Result<void> read_tokenizer_json(const nlohmann::json& document, const std::string& file,
                                 TokenizerParts& parts);

}  // namespace tandem::actors
