#include "actors/grade/answer_order.h"

#include <algorithm>
#include <cctype>
#include <tuple>

namespace tandem::grade {
namespace {

std::string without_zeros_before(const std::string& digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
}

bool is_zero_number(const Node& node) {
  return node.op == Op::kNumber && node.name.find_first_not_of("0.") == std::string::npos;
}

bool whole_number(const Expr& expr) {
  return is(expr, Op::kNumber) &&
         std::ranges::all_of(expr->name, [](char c) { return c >= '0' && c <= '9'; });
}

bool hours_and_minutes(const Expr& ratio) {
  const Expr &hours = ratio->parts[0], &minutes = ratio->parts[1];
  if (!whole_number(hours) || !whole_number(minutes) || minutes->name.size() != 2) return false;
  const std::string count = without_zeros_before(hours->name);
  return (count.size() == 1 || (count.size() == 2 && count < "24")) && minutes->name < "60";
}

// A name without case, then the length and the digits of its subscript, then the spelling.
using OrderOfName = std::tuple<std::string, std::size_t, std::string, std::string>;

OrderOfName order_of_name(const Expr& definition) {
  const Expr& of = definition->parts[0];
  std::string name = of->name.empty() ? spelled(of) : of->name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t below = name.rfind('_');
  if (below == std::string::npos || below + 1 == name.size()) return {name, 0, "", spelled(of)};
  const std::string subscript = without_zeros_before(name.substr(below + 1));
  const auto digits = static_cast<std::size_t>(
      std::ranges::find_if(subscript, [](char c) { return c < '0' || c > '9'; }) -
      subscript.begin());
  return {name.substr(0, below), digits, subscript, spelled(of)};
}

}  // namespace

std::optional<std::string> time_of_day(const Expr& ratio) {
  const bool time = hours_and_minutes(ratio) || any_part(ratio, is_zero_number);
  return time ? std::optional(spelled_ratio(ratio)) : std::nullopt;
}

std::string spelled_ratio(const Expr& ratio) {
  const Expr& first = ratio->parts[0];
  const bool whole = whole_number(first);
  return (whole ? without_zeros_before(first->name) : spelled(first)) + ":" +
         spelled(ratio->parts[1]);
}

bool may_be_points(const Expr& expr) {
  if (is(expr, Op::kList)) return std::ranges::all_of(expr->parts, may_be_points);
  return is(expr, Op::kBracket) && expr->name == "()" &&
         !any_part(expr, [](const Node& node) { return node.op == Op::kInfinity; });
}

std::vector<Expr> in_order_of_names(std::vector<Expr> definitions) {
  std::ranges::stable_sort(definitions, {}, order_of_name);
  return definitions;
}

}  // namespace tandem::grade
