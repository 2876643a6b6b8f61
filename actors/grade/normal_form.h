// Equality by exact algebra.
//
// An expression becomes a fraction of polynomials (polynomial.h) whose atoms are its variables, the
// roots of primes, π, e, i, and, each as a whole, terms that algebra does not take apart: \sin x,
// \sqrt{x+1}. If the difference of two fractions is 0, the expressions are equal wherever both are
// defined.
//
// If it is not 0, they differ, unless an atom depends on others in a way that the rules do not tell
// (\sin^2 + \cos^2, nested roots): then the question stays open. Variables, i, and the roots of
// primes are independent of each other (Besicovitch, "On the linear independence of fractional
// powers of integers", 1940), and so is one transcendental number. Whether e and π are independent
// is not known.
#pragma once

#include "actors/grade/budget.h"
#include "actors/grade/expression.h"
#include "actors/grade/small_rational.h"

namespace tandem::grade {

enum class Verdict { kSame, kDifferent, kOpen };

// Both must have a value (has_value()).
Verdict compare_exactly(const Expr& a, const Expr& b, Work& work);

// Whether algebra shows that a is a rational multiple of b, other than 0: 2x - 4 of x - 2. Common
// denominators do not count, so that y/x - 2 is one of y - 2x.
bool proportional_exactly(const Expr& a, const Expr& b, Work& work);

// The value of an expression that is a rational number by algebra alone.
MaybeRational rational_value(const Expr& expr, Work& work);

}  // namespace tandem::grade
