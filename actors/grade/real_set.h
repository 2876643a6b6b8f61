// Sets of real numbers: intervals, their unions, and inequalities in one variable, in a form that
// does not depend on how a set is written. "x < 2 or x > 3" is (-∞, 2) and (3, ∞), and "x ≠ 2" is
// all numbers but 2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/grade/same_expression.h"

namespace tandem::grade {

struct RealInterval {
  Expr low, high;  // null for -∞ and ∞
  bool low_closed = false, high_closed = false;
};

struct RealSet {
  std::string name;                 // of the variable of an inequality, else empty
  std::vector<RealInterval> parts;  // in order; they neither overlap nor touch
};

// None for what is no such set, or has an end whose place is not known.
std::optional<RealSet> real_set(const Expr& expr, Budget& budget);

bool same_set(const RealSet& a, const RealSet& b, Budget& budget);

}  // namespace tandem::grade
