// Added tokens are texts that a tokenizer turns into one token wherever they stand, such as
// <|im_end|>. This file cuts a text at them, before any other step of encoding.
//
// The rules are those of the `tokenizers` library, in which each added token has four flags
// (normalized, lstrip, rstrip, single_word); tests/golden/tokenizers has its results.
#pragma once

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

// Cuts `text` (valid UTF-8) at those tokens of `added` (longest first) whose `normalized` is as
// given. The stretches returned cover the text in order. Where tokens overlap, the leftmost one
// wins, and of several that begin at one place the longest. A token that its neighbours rule out
// (single_word) becomes plain text, in which no other token is looked for, as in the reference.
std::vector<Stretch> cut_at_added(std::string_view text, const std::vector<AddedToken>& added,
                                  bool normalized);

}  // namespace tandem::model
