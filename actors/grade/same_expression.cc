#include "actors/grade/same_expression.h"

namespace tandem::grade {

bool same_expression(const Expr& a, const Expr& b, Budget& budget) {
  if (--budget.comparisons_left < 0) return false;
  const Verdict exact = compare_exactly(a, b, budget.algebra);
  if (exact != Verdict::kOpen) return exact == Verdict::kSame;
  return compare_by_evaluation(a, b, budget) == Verdict::kSame;
}

bool proportional(const Expr& a, const Expr& b, Budget& budget) {
  if (--budget.comparisons_left < 0) return false;
  if (proportional_exactly(a, b, budget.algebra)) return true;
  bool positive = false;
  return proportional_by_evaluation(a, b, positive, budget) == Verdict::kSame;
}

bool proportional(const Expr& a, const Expr& b, bool& positive, Budget& budget) {
  return proportional_by_evaluation(a, b, positive, budget) == Verdict::kSame;
}

}  // namespace tandem::grade
