// The letter that an answer to a question with choices names: A to J.
#pragma once

#include <optional>
#include <string_view>

namespace tandem::grade {

struct Choice {
  char letter = 0;
  bool alone = false;  // nothing stands behind it
};

// "B", "(B)", "B.", "\text{(B)}" and, with words behind the letter, "(B) 5" and "B) 5"; none for
// anything else, such as (B)^2, and where the words may name another choice: "(B) or C".
std::optional<Choice> choice_of(std::string_view text);

}  // namespace tandem::grade
