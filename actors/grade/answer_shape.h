// The kinds of answers, and the parts of an answer that count. The comparison of two answers
// (same_answer.h) and the form of one (answer_form.h) share them, so that both read answers alike.
#pragma once

#include <optional>
#include <string>

#include "actors/grade/expression.h"

namespace tandem::grade {

// The text of an answer that is only words, without white space, full stops and case: \text{even},
// or NO, which could be a segment as well.
std::optional<std::string> words_of(const Expr& expr);

// Whether a sum or product of plain numbers in the answer is left open: 2+3. Fractions, mixed
// numbers and scientific notation are numbers.
bool has_open_arithmetic(const Expr& expr);

// "x = 5", "f(x) = 2x": a name, and what it is.
bool is_definition(const Expr& expr);
inline bool is_items(const Expr& expr) { return is(expr, Op::kList) || is(expr, Op::kSet); }
bool is_definitions(const Expr& items);
// Whether the items define several names: x = 1, y = 2, and not x = 1 or x = 2.
bool named_items(const Expr& items);

// ± stands for both values: a list of them. Within a list each item is taken apart.
Expr without_signs(const Expr& expr);

// The same without the units in it.
Expr without_units(const Expr& expr);

// One form for what is written in several: (x, y) = (1, 2) as x = 1, y = 2; a union of sets of
// items as one set; a number times a matrix as the matrix of the products. Parts stay as they are.
Expr in_one_form(const Expr& expr);

// The value that an answer gives, without its name, unit and sign of percent.
Expr bare(const Expr& expr);

}  // namespace tandem::grade
