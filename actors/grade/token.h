// The tokens of an answer in LaTeX, plain text or Unicode. Different spellings of one thing give
// one token: \dfrac and \frac, √ and \sqrt, ≤ and \leq, ² and ^{2}, the word pi and \pi. White
// space, sizes (\left, \big) and the delimiters of formulas are dropped. A row break is a token of
// its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::grade {

inline constexpr std::size_t kAnswerBytesMax = 2048;  // a longer text is not read
inline constexpr std::size_t kTokensMax = 1024;

enum class TokenKind {
  kNumber,   // digits, perhaps with a point
  kLetter,   // a letter, the name of a Greek one, or a name in capitals: AB
  kCommand,  // "frac", "sin", "infty", "<=", "cup", "begin", "dollar", …
  kSign,     // one character: + - * / ^ _ ( ) [ ] { } | = < > , ; : ! % ' &
  kText,     // the inside of \text{…}, or a word that means nothing in a formula
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  bool spaced = false;  // white space stands before it
  bool marked = false;  // kText within \text{…}
};

// The tokens, with kEnd as the last; none for a text that is too long, has a brace of \text or an
// environment that does not close, or holds a character that means nothing here.
std::optional<std::vector<Token>> tokens_of(std::string_view text);

}  // namespace tandem::grade
