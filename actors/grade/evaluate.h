// Equality by evaluation, where algebra leaves the question open.
//
// Two expressions are evaluated at random points at which both are defined, to some 165 digits with
// a bound of the error (fixed_point.h). If they differ by more than their errors at one point, they
// differ. If they agree at every point in far more digits than both texts have digits, they are
// taken for equal: a decimal that is no longer than the texts cannot agree with another number by
// chance. If the error is too large for either, the question stays open.
//
// The points follow from a hash of both expressions, so that the verdict is always the same and
// nobody can write an answer for points that are known beforehand.
//
// Variables are real. Where neither expression is defined at any real point that was tried, as with
// (-1)^n and n!, whole numbers are tried. Complex values count only for expressions with i or
// without variables.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "actors/grade/budget.h"
#include "actors/grade/expression.h"
#include "actors/grade/fixed_point.h"
#include "actors/grade/normal_form.h"

namespace tandem::grade {

Verdict compare_by_evaluation(const Expr& a, const Expr& b, Budget& budget);

// Whether a is b times one number, at all points: kSame then, and `positive` tells its sign.
Verdict proportional_by_evaluation(const Expr& a, const Expr& b, bool& positive, Budget& budget);

// A value at a point; `im` is 0 for a real one.
struct PointValue {
  Ball re, im;
};
// The values at the first `wanted` points, of a list that is the same for all expressions, at which
// this one is defined; one value where there are no variables. Empty where too few points are
// found, or where equal values would have to agree in more than `bits_most` bits behind the point.
std::vector<PointValue> values_at_known_points(const Expr& expr, std::size_t wanted,
                                               double bits_most, Budget& budget);

// The value of a real expression without variables, to some ten digits.
std::optional<double> approximate(const Expr& expr, Budget& budget);

}  // namespace tandem::grade
