// The branches follow those of same_answer.cc: a case that compares in order there is spelled in
// order here, and one without an order is sorted.
#include "actors/grade/answer_form.h"

#include <algorithm>
#include <vector>

#include "actors/grade/answer_order.h"
#include "actors/grade/answer_shape.h"
#include "actors/grade/choice.h"
#include "actors/grade/normal_form.h"
#include "actors/grade/read_answer.h"
#include "actors/grade/real_set.h"
#include "actors/grade/value_form.h"

namespace tandem::grade {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ";") + part;
  return text;
}

// In an order of their own; of a set each once.
std::string unordered(std::vector<std::string> parts, bool set) {
  std::ranges::sort(parts);
  if (set) parts.erase(std::ranges::unique(parts).begin(), parts.end());
  return "{" + joined(parts) + "}";
}

class Form {
 public:
  std::string of(const Expr& written) {
    const Expr expr = in_one_form(written);
    if (is(expr, Op::kPercent)) return of(expr->parts[0]);
    if (const auto words = words_of(expr)) return "words " + *words;
    if (has_value(expr)) return value_form(expr, budget_).value_or(spelled(expr));
    if (is_items(expr)) return items(expr);
    switch (expr->op) {
      case Op::kRelation:
        return relation(expr);
      case Op::kUnion:
      case Op::kWithout:
      case Op::kReals:
      case Op::kChain:
        return set(expr).value_or(spelled(expr));
      case Op::kBracket: {
        const auto endless = [](const Node& node) { return node.op == Op::kInfinity; };
        const auto interval = any_part(expr, endless) ? set(expr) : std::nullopt;
        return interval ? *interval : expr->name[0] + joined(each(expr->parts)) + expr->name[1];
      }
      case Op::kMatrix:
        return "matrix" + expr->name + rows(expr);
      case Op::kRatio:
        if (const auto time = time_of_day(expr)) return "time " + *time;
        return "ratio " + value_form(quotient(expr->parts[0], expr->parts[1]), budget_)
                              .value_or(spelled(expr));
      default:
        return spelled(expr);
    }
  }

 private:
  std::vector<std::string> each(const std::vector<Expr>& parts) {
    std::vector<std::string> texts;
    for (const Expr& part : parts) texts.push_back(of(part));
    return texts;
  }

  std::string rows(const Expr& matrix) {
    std::string text;
    for (const Expr& row : matrix->parts)
      text += "[" + (is(row, Op::kList) ? joined(each(row->parts)) : of(row)) + "]";
    return text;
  }

  std::string items(const Expr& expr) {
    if (is_definitions(expr) && named_items(expr)) {  // x = 1, y = 2: the point (1, 2)
      return "(" + joined(each(in_order_of_names(expr->parts))) + ")";
    }
    const bool either = is(expr, Op::kList) && !expr->name.empty();
    const auto known = either ? set(expr) : std::nullopt;
    return known ? *known : unordered(each(expr->parts), is(expr, Op::kSet));
  }

  std::optional<std::string> set(const Expr& expr) {
    const auto known = real_set(expr, budget_);
    if (!known) return std::nullopt;
    // Points that overlap as intervals are no set: (1, 3) or (2, 5) is not (1, 5).
    if (is(expr, Op::kList) && may_be_points(expr) && known->parts.size() != expr->parts.size())
      return std::nullopt;
    const auto point = [](const RealInterval& part) { return part.low && part.low == part.high; };
    std::vector<std::string> parts;
    if (std::ranges::all_of(known->parts, point)) {
      for (const RealInterval& part : known->parts) parts.push_back(of(part.low));
      return unordered(std::move(parts), true);
    }
    for (const RealInterval& part : known->parts) {
      const std::string low = part.low ? of(part.low) : "-inf";
      const std::string high = part.high ? of(part.high) : "inf";
      parts.push_back((part.low_closed ? "[" : "(") + low + ";" + high +
                      (part.high_closed ? "]" : ")"));
    }
    return joined(parts);
  }

  std::string relation(const Expr& expr) {
    if (expr->name == "e") return of(expr->parts[1]);
    if (is_definition(expr)) return of(expr->parts[1]);
    const bool equation = expr->name == "=";
    if (equation && is(expr->parts[1], Op::kSymbol)) return of(expr->parts[0]);  // 5 = x
    if (!equation)
      if (auto known = set(expr)) return *std::move(known);
    const auto sides = ratio_form(difference(expr->parts[0], expr->parts[1]), budget_);
    if (!sides) return spelled(expr);
    if (equation || expr->name == "!") return expr->name + sides->text;
    const bool upward = expr->name == "<" || expr->name == "l";
    const bool strict = expr->name == "<" || expr->name == ">";
    return (strict ? "<" : "l") + std::string(sides->positive == upward ? "+" : "-") + sides->text;
  }

  Budget budget_;
};

}  // namespace

std::optional<std::string> answer_form(std::string_view text) {
  if (const auto choice = choice_of(text)) return std::string("choice ") + choice->letter;
  const auto answer = read_answer(text);
  if (!answer) return std::nullopt;
  const Expr value = bare(*answer);
  Work work;
  const bool unfinished = has_value(value) && has_open_arithmetic(*answer) &&
                          rational_value(value, work);  // 2+3 is not 5 for a comparison
  return (unfinished ? "unfinished " : "") + Form().of(without_signs(without_units(*answer)));
}

}  // namespace tandem::grade
