// Added tokens are texts that a tokenizer turns into one token wherever they stand, such as
// <|im_end|>. This file cuts a text at them, before any other step of encoding.
//
// The rules are those of the `tokenizers` library, in which each added token has four flags
// (normalized, lstrip, rstrip, single_word); tests/golden/tokenizers has its results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::model {

struct AddedToken {
  std::string content;  // as tokenizer.json has it
  // The text that is looked for, and that the id decodes to: `content`, in NFC where the token is
  // looked for in text in NFC.
  std::string pattern;
  std::int32_t id = 0;
  bool special = false;      // left out by SpecialTokens::kSkip
  bool normalized = false;   // looked for in normalized text, after the tokens that are not
  bool left_strip = false;   // the white space before the token belongs to the token
  bool right_strip = false;  // the white space after the token belongs to the token
  bool single_word = false;  // only where no letter, digit, mark or underscore touches the token
};

// A stretch of text: either plain, or one added token with the white space that belongs to it.
struct Stretch {
  std::size_t begin, size;  // bytes
  const AddedToken* token;  // borrowed; null for plain text
};

// Immutable; any thread.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // Cuts `text` (valid UTF-8) at those tokens whose `normalized` is as given. The stretches
  // returned cover the text in order. Where tokens overlap, the leftmost one wins, and of several
  // that begin at one place the longest. A token that its neighbours rule out (single_word) becomes
  // plain text, in which no other token is looked for, as in the reference.
  std::vector<Stretch> cut(std::string_view text, bool normalized) const;

 private:
  // Tokens by the first byte of their patterns, the longest first: those of the byte B are
  // order[begin[B]] to order[begin[B + 1]]. Most bytes of a text begin no token.
  struct ByLead {
    std::array<std::uint32_t, 257> begin{};
    std::vector<std::uint32_t> order;  // indices of tokens_
  };
  static ByLead by_lead(const std::vector<AddedToken>& tokens, bool normalized);

  std::vector<AddedToken> tokens_;
  ByLead raw_, normalized_;
};

}  // namespace tandem::model
