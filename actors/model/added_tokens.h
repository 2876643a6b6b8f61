// Added tokens: the texts that a tokenizer takes for one token wherever they stand, such as
// <|im_end|>, and how a text is cut at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::actors {

struct AddedToken {
  std::string content;
  std::string pattern;  // looked for and decoded to: the content, in NFC where the text is
  std::int32_t id = 0;
  bool special = false;
  bool normalized = false;   // looked for in normalized text, after those that are not
  bool left_strip = false;   // takes the white space before it along
  bool right_strip = false;  // takes the white space after it along
  bool single_word = false;  // only where no letter, digit, mark or underscore touches it
};

// A stretch of text: plain, or one added token with the white space that it takes along.
struct Stretch {
  std::size_t begin, size;
  const AddedToken* token;  // borrowed; null for plain text
};

// Cuts `text`, valid UTF-8, at those of `added` (longest first) whose `normalized` is as given. The
// leftmost token wins, the longest where several begin. One that is refused for its neighbours
// (single_word) is plain text, in which no other token is looked for; so the reference has it.
std::vector<Stretch> cut_at_added(std::string_view text, const std::vector<AddedToken>& added,
                                  bool normalized);

}  // namespace tandem::actors
