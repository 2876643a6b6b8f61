// The exact value of an answer's text, in LaTeX or plain, or none: "not a number". A number is
// never guessed from digits that stand in something else, such as \sqrt{5}, 5\pi or x \neq 5.
//
// Forms that are read:
//   numbers     12, -3.50, .5, 1,234,567.8, 6.02e23, 3 \times 10^{5}, 2^{10}, \sqrt{9}
//   fractions   3/4, \frac{3}{4} (dfrac, tfrac, \frac34), 1 1/2, 1\frac{1}{2}
//   with more   50%, $5, x = 5, 5 \text{ cm}, 72 clips, 90^\circ
//   several     (1, 2), [0, \infty), \{1, 2\} and 1, 2
// Sums and products are not computed: 2+3 is a question.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/grade/percent.h"
#include "actors/reward/rational.h"

namespace tandem::reward {

inline constexpr std::size_t kValueBytesMax = 2048;  // a longer text is not a number
inline constexpr int kValueDepthMax = 8;             // levels of braces and brackets
inline constexpr int kValueStepsMax = 64;            // multiplications and divisions
inline constexpr int kValueExponentMax = 1024;

struct MathItem {
  Rational number;
  bool percent = false;
  bool infinite = false;  // then `number` has the sign alone
  std::string unit = {};  // as grade::units_agree() takes it
};

struct MathValue {
  // One item, unless `open` and `close` name the brackets of a tuple or an interval, or are '{' and
  // '}', which make it a set.
  std::vector<MathItem> items;
  char open = 0, close = 0;
  bool listed = false;  // items that stand without brackets, whose repetitions count
};

// The value of the whole text, or none. Time and size are bounded by the constants above.
std::optional<MathValue> parse_value(std::string_view text);

// 50% equals 50% and what `percent` says. The items of a set or a list have no order. Numbers whose
// units do not agree are different.
bool same_value(const MathValue& a, const MathValue& b, grade::PercentReading percent);

// The text without white space, LaTeX spacing and delimiters: two texts that agree in it are the
// same expression.
std::string same_text_form(std::string_view text);

}  // namespace tandem::reward
