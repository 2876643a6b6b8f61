// What the comparison of two answers (same_answer.h) and the form of one (answer_form.h) must do
// alike about ratios, lists of points and the order of names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/grade/expression.h"

namespace tandem::grade {

// The spelling of a ratio that may be a time of day, which is no fraction: 3:20 and 05:00, without
// zeros before the hours. None for a ratio that is no time, such as 2:3 and 30:45.
std::optional<std::string> time_of_day(const Expr& ratio);

// How a ratio is spelled, without zeros before its first number.
std::string spelled_ratio(const Expr& ratio);

// Whether the answer is a point or a list of points as well as intervals: (1, 3) or (2, 5).
bool may_be_points(const Expr& expr);

// The definitions in the order that a point has: by name without case, then by subscript as a
// number, so that x_2 stands before x_{10}.
std::vector<Expr> in_order_of_names(std::vector<Expr> definitions);

}  // namespace tandem::grade
