// Reads the text of an answer, in LaTeX or plain, as a tree (expression.h).
//
// A text that has two meanings is not read, since a guess could take a wrong answer for a right
// one: 1/2x, \sqrt12, \sin x/2, 2 3. A text that the grammar does not know, such as an integral or
// a limit, is not read either. Such answers are equal only where their texts are.
//
// Forms that are read (read_answer.cc has the grammar):
//   expressions   \frac{\sqrt3}{2}, 11\sqrt2, 2x(x+1)^2, -1+e^{16}, \log_2 8, \sin^2 x, |x|, n!,
//                 \binom{5}{2}, 0.\overline{3}, 1\frac12, 3 \times 10^5, 10_{2}, \pm 2, π/2, √3
//   several       (1, 2), [0, \infty), \{1, 2\}, 1, 2 and 3, (0,1) \cup [2,3], matrices, 1:2,
//                 \{x \mid x > 2\}
//   relations     y = 2x + 1, x \in [2,5], 1 < x \le 3, x \neq 2, x = 1 or x = 2, |x| < 2
//   words         \text{(B)}, Monday; units, currencies, ° and % beside a number
//
// Capitals side by side are one name, such as the segment AB, and no product.
#pragma once

#include <optional>
#include <string_view>

#include "actors/grade/expression.h"

namespace tandem::grade {

inline constexpr int kDepthMax = 32;  // levels of braces, brackets and arguments

std::optional<Expr> read_answer(std::string_view text);

}  // namespace tandem::grade
