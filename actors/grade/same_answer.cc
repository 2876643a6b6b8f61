#include "actors/grade/same_answer.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "actors/grade/answer_order.h"
#include "actors/grade/answer_shape.h"
#include "actors/grade/choice.h"
#include "actors/grade/read_answer.h"
#include "actors/grade/real_set.h"
#include "actors/grade/same_expression.h"
#include "actors/grade/unit.h"

namespace tandem::grade {
namespace {

constexpr std::size_t kItemsMax = 32;

// units

// The units in a tree.
void add_units(const Expr& expr, std::set<std::string>& units) {
  if (is(expr, Op::kMeasure)) units.insert(expr->name);
  for (const Expr& part : expr->parts) add_units(part, units);
}

// Whether each unit of one may stand for each unit of the other.
bool all_units_agree(const Expr& a, const Expr& b) {
  std::set<std::string> left, right;
  add_units(a, left);
  add_units(b, right);
  if (left.size() > kItemsMax || right.size() > kItemsMax) return false;
  return std::ranges::all_of(left, [&](const std::string& unit) {
    return std::ranges::all_of(right,
                               [&](const std::string& other) { return units_agree(unit, other); });
  });
}

class Comparison {
 public:
  explicit Comparison(PercentReading percent) : percent_(percent) {}

  bool same(const Expr& written_a, const Expr& written_b) {
    const Expr a = in_one_form(written_a), b = in_one_form(written_b);
    if (is(a, Op::kMeasure) || is(b, Op::kMeasure)) return same_measures(a, b);
    if (is(a, Op::kPercent) || is(b, Op::kPercent)) return same_percent(a, b);
    if (words_of(a) && words_of(b) && (is(a, Op::kText) || is(b, Op::kText)))
      return words_of(a) == words_of(b);
    if (has_value(a) && has_value(b)) return same_expression(a, b, budget_);
    if (is_items(a) && is_items(b) && named_items(a) == named_items(b)) {
      if (const auto sets = same_lists_of_sets(a, b)) return *sets;
      return same_items(a, b);
    }
    if (is(a, Op::kRelation) || is(b, Op::kRelation)) return same_relations(a, b);
    if (is_items(a) && is_definitions(a) && named_items(a)) return same_in_order(a, b);
    if (is_items(b) && is_definitions(b) && named_items(b)) return same_in_order(b, a);
    return same_structures(a, b);
  }

 private:
  bool same_measures(const Expr& a, const Expr& b) {
    if (is(a, Op::kPercent) || is(b, Op::kPercent)) return false;
    const auto value = [](const Expr& expr) {
      return is(expr, Op::kMeasure) ? expr->parts[0] : expr;
    };
    const bool both = is(a, Op::kMeasure) && is(b, Op::kMeasure);
    if (both && !units_agree(a->name, b->name)) return false;
    if (is(value(a), Op::kRatio) && is(value(b), Op::kRatio))  // times of day
      return spelled_ratio(value(a)) == spelled_ratio(value(b));
    return same(value(a), value(b));
  }

  bool same_percent(const Expr& a, const Expr& b) {
    if (is(a, Op::kPercent) && is(b, Op::kPercent)) return same(a->parts[0], b->parts[0]);
    const Expr& share = is(a, Op::kPercent) ? a->parts[0] : b->parts[0];
    const Expr& other = is(a, Op::kPercent) ? b : a;
    if (!has_value(share) || !has_value(other)) return false;
    const bool as_number = percent_ != PercentReading::kValue &&
                           (percent_ != PercentReading::kWhole || is_whole_number(share));
    const bool as_value = percent_ != PercentReading::kNumber;
    return (as_number && same_expression(share, other, budget_)) ||
           (as_value && same_expression(quotient(share, number("100")), other, budget_));
  }
  static bool is_whole_number(const Expr& expr) {
    const bool negated =
        is(expr, Op::kProduct) && expr->parts.size() == 2 && expr->parts[0]->name == "-1";
    const Expr& digits = negated ? expr->parts[1] : expr;
    return is(digits, Op::kNumber) && digits->name.find('.') == std::string::npos;
  }

  // relations

  bool same_relations(const Expr& a, const Expr& b) {
    if (is_relation(a, "e") && !is_relation(b, "e")) return same(a->parts[1], b);
    if (is_relation(b, "e") && !is_relation(a, "e")) return same(a, b->parts[1]);
    if (is_definition(a) && is_definition(b) && same_name(a, b))
      return same(a->parts[1], b->parts[1]);
    if (is_definition(a) && !is(b, Op::kRelation)) return same(a->parts[1], b);
    if (is_definition(b) && !is(a, Op::kRelation)) return same(a, b->parts[1]);
    if (!all_units_agree(a, b)) return false;
    return same_bare_relations(without_units(a), without_units(b));
  }
  bool same_bare_relations(const Expr& a, const Expr& b) {
    if (is_relation(a, "=") && is_relation(b, "=")) return same_equations(a, b);
    if (is_relation(a, "=") || is_relation(b, "=")) return false;
    if (const auto sets = same_sets(a, b)) return *sets;
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

  // Whether two sets of real numbers are the same; none where one of them is no such set.
  std::optional<bool> same_sets(const Expr& a, const Expr& b) {
    const auto left = real_set(without_units(a), budget_);
    const auto right = left ? real_set(without_units(b), budget_) : std::nullopt;
    if (!right) return std::nullopt;
    return all_units_agree(a, b) && same_set(*left, *right, budget_);
  }
  // The same for two lists that are sets: x < 1 or x > 2.
  std::optional<bool> same_lists_of_sets(const Expr& a, const Expr& b) {
    if (may_be_points(a) && may_be_points(b)) return std::nullopt;
    const bool lists = is(a, Op::kList) && !a->name.empty() && is(b, Op::kList) && !b->name.empty();
    return lists ? same_sets(a, b) : std::nullopt;
  }

  // x = 1, y = 2 and the point (1, 2): a point has its values in the order of the names.
  bool same_in_order(const Expr& named, const Expr& other) {
    if (!is(other, Op::kBracket) || other->name != "()" ||
        other->parts.size() != named->parts.size())
      return false;
    const std::vector<Expr> items = in_order_of_names(named->parts);
    for (std::size_t i = 0; i < items.size(); ++i)
      if (!same(items[i]->parts[1], other->parts[i])) return false;
    return true;
  }

  // Each item of one has an equal one in the other; of two lists, one of its own.
  bool same_items(const Expr& a, const Expr& b) {
    if (a->parts.size() > kItemsMax || b->parts.size() > kItemsMax) return false;
    const auto within = [&](const Expr& some, const Expr& all) {
      return std::ranges::all_of(some->parts, [&](const Expr& item) {
        return std::ranges::any_of(all->parts,
                                   [&](const Expr& other) { return same(item, other); });
      });
    };
    if (!is(a, Op::kList) || !is(b, Op::kList)) return within(a, b) && within(b, a);
    std::vector<Expr> left = b->parts;
    for (const Expr& item : a->parts) {
      const auto found =
          std::ranges::find_if(left, [&](const Expr& other) { return same(item, other); });
      if (found == left.end()) return false;
      left.erase(found);
    }
    return left.empty();
  }

  bool same_structures(const Expr& a, const Expr& b) {
    const auto set_like = [](const Expr& expr) {
      return expr->op == Op::kUnion || expr->op == Op::kWithout || expr->op == Op::kReals ||
             expr->op == Op::kChain || (is(expr, Op::kBracket) && expr->parts.size() == 2) ||
             (is(expr, Op::kList) && (expr->name == "or" || expr->name == "and"));
    };
    const bool tuples = is(a, Op::kBracket) && is(b, Op::kBracket);
    if (set_like(a) && set_like(b) && !tuples)
      return !(may_be_points(a) && may_be_points(b)) && same_sets(a, b).value_or(false);
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
    if (time_of_day(a) || time_of_day(b)) return spelled_ratio(a) == spelled_ratio(b);
    return has_value(a->parts[0]) && has_value(a->parts[1]) && has_value(b->parts[0]) &&
           has_value(b->parts[1]) &&
           same_expression(product(a->parts[0], b->parts[1]), product(b->parts[0], a->parts[1]),
                           budget_);
  }

  const PercentReading percent_;
  Budget budget_;
};

}  // namespace

std::optional<bool> same_answer(std::string_view reference, std::string_view given,
                                PercentReading percent) {
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
  return Comparison(percent).same(without_signs(*wanted), without_signs(*answer));
}

}  // namespace tandem::grade
