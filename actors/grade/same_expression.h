// Whether two expressions are equal: by algebra (normal_form.h) where it decides, else by
// evaluation (evaluate.h). Where neither decides, they count as different.
#pragma once

#include "actors/grade/budget.h"
#include "actors/grade/evaluate.h"
#include "actors/grade/expression.h"
#include "actors/grade/normal_form.h"

namespace tandem::grade {

// Both must have a value (has_value()).
bool same_expression(const Expr& a, const Expr& b, Budget& budget);

// Whether a is b times a number: for equations, with any number but 0; for inequalities the sign
// counts, and `positive` tells it.
bool proportional(const Expr& a, const Expr& b, Budget& budget);
bool proportional(const Expr& a, const Expr& b, bool& positive, Budget& budget);

}  // namespace tandem::grade
