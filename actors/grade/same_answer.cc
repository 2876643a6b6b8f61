#include "actors/grade/same_answer.h"

#include <algorithm>
#include <string>

#include "actors/grade/answer_shape.h"
#include "actors/grade/read_answer.h"
#include "actors/grade/real_set.h"
#include "actors/grade/same_expression.h"

namespace tandem::grade {
namespace {

constexpr std::size_t kItemsMax = 32;

// The text of an answer that is only words or one-letter names, such as \text{even} or x.
std::optional<std::string> words_of(const Expr& expr) {
  if (is(expr, Op::kText)) return plain_words(expr->name);
  return std::nullopt;
}

class Comparison {
 public:
  bool same(const Expr& a, const Expr& b) {
    if (is(a, Op::kMeasure) || is(b, Op::kMeasure)) return same_measures(a, b);
    if (is(a, Op::kPercent) || is(b, Op::kPercent)) return same_percent(a, b);
    if (has_value(a) && has_value(b)) return same_expression(a, b, budget_);
    if (is_items(a) && is_items(b) && named_items(a) == named_items(b)) {
      const auto left = as_set(a, "or"), right = left ? as_set(b, "or") : std::nullopt;
      if (right) return same_set(*left, *right, budget_);
      return same_items(a, b);
    }
    if (is(a, Op::kRelation) || is(b, Op::kRelation)) return same_relations(a, b);
    if (is_items(a) && is_definitions(a) && named_items(a)) return same_in_order(a, b);
    if (is_items(b) && is_definitions(b) && named_items(b)) return same_in_order(b, a);
    return same_structures(a, b);
  }

 private:
  bool same_measures(const Expr& a, const Expr& b) {
    const auto unit = [](const Expr& expr) { return is(expr, Op::kMeasure) ? expr->name : ""; };
    if (!unit(a).empty() && !unit(b).empty() && unit(a) != unit(b)) return false;
    const auto value = [](const Expr& expr) {
      return is(expr, Op::kMeasure) ? expr->parts[0] : expr;
    };
    return same(value(a), value(b));
  }

  bool same_percent(const Expr& a, const Expr& b) {
    if (is(a, Op::kPercent) && is(b, Op::kPercent)) return same(a->parts[0], b->parts[0]);
    const Expr& share = is(a, Op::kPercent) ? a->parts[0] : b->parts[0];
    const Expr& other = is(a, Op::kPercent) ? b : a;
    if (!has_value(share) || !has_value(other)) return false;
    return same_expression(share, other, budget_) ||
           same_expression(quotient(share, number("100")), other, budget_);
  }

  // relations

  bool same_relations(const Expr& a, const Expr& b) {
    if (is_relation(a, "e") && !is_relation(b, "e")) return same(a->parts[1], b);
    if (is_relation(b, "e") && !is_relation(a, "e")) return same(a, b->parts[1]);
    if (is_definition(a) && is_definition(b) && same_name(a, b))
      return same(a->parts[1], b->parts[1]);
    if (is_definition(a) && !is(b, Op::kRelation)) return same(a->parts[1], b);
    if (is_definition(b) && !is(a, Op::kRelation)) return same(a, b->parts[1]);
    if (is_relation(a, "=") && is_relation(b, "=")) return same_equations(a, b);
    if (is_relation(a, "=") || is_relation(b, "=")) return false;
    const auto left = real_set(a, budget_), right = left ? real_set(b, budget_) : std::nullopt;
    if (right) return same_set(*left, *right, budget_);
    if (!is(a, Op::kRelation) || !is(b, Op::kRelation)) return false;
    return a->name == "!" && b->name == "!" ? same_equations(a, b) : same_inequalities(a, b);
  }
  static bool is_relation(const Expr& expr, std::string_view sign) {
    return is(expr, Op::kRelation) && expr->name == sign;
  }
  static bool same_name(const Expr& a, const Expr& b) {
    return spelled(a->parts[0]) == spelled(b->parts[0]);
  }
  static bool sides_have_values(const Expr& relation) {
    return has_value(relation->parts[0]) && has_value(relation->parts[1]);
  }
  static Expr left_less_right(const Expr& relation) {
    return difference(relation->parts[0], relation->parts[1]);
  }

  bool same_equations(const Expr& a, const Expr& b) {
    if (!sides_have_values(a) || !sides_have_values(b)) return spelled(a) == spelled(b);
    return proportional(left_less_right(a), left_less_right(b), budget_);
  }

  bool same_inequalities(const Expr& a, const Expr& b) {
    if (!sides_have_values(a) || !sides_have_values(b)) return spelled(a) == spelled(b);
    const auto strict = [](const std::string& sign) { return sign == "<" || sign == ">"; };
    const auto upward = [](const std::string& sign) { return sign == "<" || sign == "l"; };
    bool positive = false;
    return strict(a->name) == strict(b->name) &&
           proportional(left_less_right(a), left_less_right(b), positive, budget_) &&
           positive == (upward(a->name) == upward(b->name));
  }

  // several

  std::optional<RealSet> as_set(const Expr& expr, std::string_view name) {
    return is(expr, Op::kList) && expr->name == name ? real_set(expr, budget_) : std::nullopt;
  }

  // x = 1, y = 2 and the point (1, 2)
  bool same_in_order(const Expr& named, const Expr& other) {
    if (!is(other, Op::kBracket) || other->name != "()" ||
        other->parts.size() != named->parts.size())
      return false;
    for (std::size_t i = 0; i < named->parts.size(); ++i)
      if (!same(named->parts[i]->parts[1], other->parts[i])) return false;
    return true;
  }

  // Each item of one has an equal one in the other.
  bool same_items(const Expr& a, const Expr& b) {
    if (a->parts.size() > kItemsMax || b->parts.size() > kItemsMax) return false;
    const auto within = [&](const Expr& some, const Expr& all) {
      return std::ranges::all_of(some->parts, [&](const Expr& item) {
        return std::ranges::any_of(all->parts,
                                   [&](const Expr& other) { return same(item, other); });
      });
    };
    return within(a, b) && within(b, a);
  }

  bool same_structures(const Expr& a, const Expr& b) {
    const auto set_like = [](const Expr& expr) {
      return expr->op == Op::kUnion || expr->op == Op::kWithout || expr->op == Op::kReals ||
             expr->op == Op::kChain || (is(expr, Op::kBracket) && expr->parts.size() == 2) ||
             (is(expr, Op::kList) && expr->name == "or");
    };
    const bool tuples = is(a, Op::kBracket) && is(b, Op::kBracket);
    if (set_like(a) && set_like(b) && !tuples) {
      const auto left = real_set(a, budget_), right = left ? real_set(b, budget_) : std::nullopt;
      return right && same_set(*left, *right, budget_);
    }
    if (is(a, Op::kRatio) && is(b, Op::kRatio)) return same_ratios(a, b);
    if (a->op != b->op) return false;
    const bool ordered = tuples || is(a, Op::kMatrix) || is(a, Op::kList);
    if (!ordered) return words_of(a) ? words_of(a) == words_of(b) : spelled(a) == spelled(b);
    return a->name == b->name &&
           std::ranges::equal(a->parts, b->parts, [&](const Expr& x, const Expr& y) {
             return is(x, Op::kList) && is(y, Op::kList) ? same_structures(x, y) : same(x, y);
           });
  }

  bool same_ratios(const Expr& a, const Expr& b) {
    return has_value(a->parts[0]) && has_value(a->parts[1]) && has_value(b->parts[0]) &&
           has_value(b->parts[1]) &&
           same_expression(product(a->parts[0], b->parts[1]), product(b->parts[0], a->parts[1]),
                           budget_);
  }

  Budget budget_;
};

}  // namespace

std::optional<bool> same_answer(std::string_view reference, std::string_view given) {
  if (const auto wanted = choice_of(reference); wanted && wanted->alone)
    if (const auto chosen = choice_of(given)) return wanted->letter == chosen->letter;
  const auto wanted = read_answer(reference);
  const auto answer = wanted ? read_answer(given) : std::nullopt;
  if (!answer) return std::nullopt;
  const Expr value = bare(*wanted);
  Work work;
  if (has_value(value) && has_open_arithmetic(*answer) && !has_open_arithmetic(value) &&
      rational_value(value, work))
    return false;
  return Comparison().same(without_signs(*wanted), without_signs(*answer));
}

}  // namespace tandem::grade
