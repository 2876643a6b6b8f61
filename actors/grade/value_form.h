// Texts that are the same for equal expressions, so that many answers can be counted without a
// comparison of each with each.
//
//   VF-1  A rational number has its reduced fraction as its form, however it is written.
//   VF-2  Any other expression has its values at points that are the same for all expressions, cut
//         to kFormBits binary places. Equal expressions that are defined at the same points have
//         the same form; different ones have it only if they agree in far more digits than their
//         texts have, as for compare_by_evaluation().
//
// The points are known beforehand, so that somebody could write two different answers of one form.
// Forms must therefore decide no reward: same_answer() does.
#pragma once

#include <optional>
#include <string>

#include "actors/grade/budget.h"
#include "actors/grade/expression.h"
#include "actors/grade/small_rational.h"

namespace tandem::grade {

inline constexpr int kFormBits = 384;

std::string text_of(const SmallRational& value);  // "-3/10", "5/1"

// None where the expression has no value (has_value()), or the budget or the digits do not suffice.
std::optional<std::string> value_form(const Expr& expr, Budget& budget);

// The same for an expression and any multiple of it, other than 0; `positive` tells the sign at the
// first point, so that it is the same for positive multiples.
struct RatioForm {
  std::string text;
  bool positive = false;
};
std::optional<RatioForm> ratio_form(const Expr& expr, Budget& budget);

}  // namespace tandem::grade
