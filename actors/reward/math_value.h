// The exact value of an answer's text, in LaTeX or plain, or none: "not a number". A number is
// never guessed from digits that stand in something else, such as \sqrt{5}, 5\pi or x \neq 5.
//
// Read: 12, -3.50, .5, 1,234,567.8, 6.02e23, 3 \times 10^{5}, 3/4, \frac{3}{4} (dfrac, tfrac,
// \frac34), 1 1/2, 1\frac{1}{2}, 2^{10}, \sqrt{9}, 50%, $5, x = 5, 5 \text{ cm}, 72 clips,
// 90^\circ, (1, 2), [0, \infty), \{1, 2\} and 1, 2. Sums and products are not computed: 2+3 is a
// question.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/reward/rational.h"

namespace tandem::actors {

inline constexpr std::size_t kValueBytesMax = 2048;  // a longer text is not a number
inline constexpr int kValueDepthMax = 8;             // of braces and brackets
inline constexpr int kValueStepsMax = 64;            // multiplications and divisions
inline constexpr int kValueExponentMax = 1024;

struct MathItem {
  Rational number;
  bool percent = false;
  bool infinite = false;  // the sign is the number's
};

struct MathValue {
  // One item, unless `open` and `close` name a tuple or an interval, or are '{' and '}': a set.
  std::vector<MathItem> items;
  char open = 0, close = 0;
};

std::optional<MathValue> parse_value(std::string_view text);

// 50% equals 50% and, as for math-verify, both 50 and 0.5. Sets have no order.
bool same_value(const MathValue& a, const MathValue& b);

// The text without white space, LaTeX spacing and delimiters: two texts that agree in it are the
// same expression.
std::string same_text_form(std::string_view text);

// A word behind a number that makes it another one: "million", "pi", "or".
bool changes_a_value(std::string_view word);

}  // namespace tandem::actors
