// The final answer in a worked solution, and whether two of them are the same.
//
// Where it stands, in this order: the last \boxed{…} (braces may nest), the text behind the last
// "####" of a line, the last number.
//
// What a number may look like: 12, -3.50, .5, 1,234,567.8, 6.02e23, 3/4, \frac{3}{4} (dfrac, tfrac,
// \frac34), 1 1/2, 1\frac{1}{2}, 50%, $5, with $…$, \(…\), \text{…}, units of \text and a final
// full stop around it. They are compared exactly, as rational numbers; 50% is 1/2. An answer that
// is no number (an expression, a name) must be the same text, white space and LaTeX spacing aside.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "actors/reward/rational.h"

namespace tandem::actors {

// The text of the final answer; none where there is neither a mark nor a number.
std::optional<std::string> final_answer(std::string_view solution);

// The whole text as one number.
std::optional<Rational> parse_number(std::string_view text);

// Of a reference answer (itself perhaps a solution with \boxed or ####) and a completion.
bool math_equal(std::string_view reference, std::string_view completion);

}  // namespace tandem::actors
