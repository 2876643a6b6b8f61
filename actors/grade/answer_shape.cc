#include "actors/grade/answer_shape.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <vector>

namespace tandem::grade {
namespace {

bool plain_number(const Expr& expr) {
  switch (expr->op) {
    case Op::kNumber:
      return true;
    case Op::kSum:
    case Op::kProduct:
    case Op::kPower:
      return std::ranges::all_of(expr->parts, plain_number);
    default:
      return false;
  }
}

bool power_of_ten(const Expr& expr) {
  return is(expr, Op::kPower) && expr->parts[0]->name == "10" && plain_number(expr->parts[1]);
}

bool left_open(const Node& node) {
  if (node.name == "mixed" || (node.op != Op::kSum && node.op != Op::kProduct)) return false;
  int numbers = 0;
  bool scientific = false;
  for (const Expr& part : node.parts) {
    const bool inverse = is(part, Op::kPower) && part->parts[1]->name == "-1";
    const bool sign = part->name == "-1";
    if (!plain_number(part) || (node.op == Op::kProduct && (inverse || sign))) continue;
    scientific = scientific || power_of_ten(part);
    ++numbers;
  }
  return numbers > (node.op == Op::kProduct && scientific ? 2 : 1);
}

bool is_name(const Expr& expr) {
  if (is(expr, Op::kSymbol) || is(expr, Op::kText)) return true;
  if (!is(expr, Op::kProduct) || !expr->name.empty() || expr->parts.size() != 2) return false;
  // f(x) and f^{-1}(x)
  const Expr &function = expr->parts[0], &of = expr->parts[1];
  const bool inverse = is(function, Op::kPower) && is(function->parts[0], Op::kSymbol) &&
                       spelled(function->parts[1]) == spelled(negative(number("1")));
  return (is(function, Op::kSymbol) || inverse) && (is(of, Op::kSymbol) || is(of, Op::kBracket));
}

bool has_sign(const Expr& expr) {
  return any_part(expr, [](const Node& node) { return node.op == Op::kPlusMinus; });
}

// (x, y) = (1, 2) as x = 1, y = 2.
Expr named_point(const Expr& expr) {
  const auto point = [](const Expr& side) {
    return is(side, Op::kBracket) && (side->name == "()" || side->name == "[]");
  };
  if (!is(expr, Op::kRelation) || expr->name != "=") return expr;
  const Expr &names = expr->parts[0], &values = expr->parts[1];
  if (!point(names) || !point(values) || names->parts.size() != values->parts.size() ||
      names->name != values->name || !std::ranges::all_of(names->parts, is_name))
    return expr;
  std::vector<Expr> items;
  for (std::size_t i = 0; i < names->parts.size(); ++i)
    items.push_back(make(Op::kRelation, {names->parts[i], values->parts[i]}, "="));
  return make(Op::kList, std::move(items));
}

// \{2, 3\} \cup \{5\} as one set.
Expr united_sets(const Expr& expr) {
  const auto is_set = [](const Expr& part) { return is(part, Op::kSet); };
  if (!is(expr, Op::kUnion) || !std::ranges::all_of(expr->parts, is_set)) return expr;
  std::vector<Expr> items;
  for (const Expr& part : expr->parts)
    items.insert(items.end(), part->parts.begin(), part->parts.end());
  return make(Op::kSet, std::move(items));
}

// A number times a matrix as the matrix of the products.
Expr scaled_matrix(const Expr& expr) {
  const auto matrix = [](const Expr& part) { return is(part, Op::kMatrix) && part->name.empty(); };
  if (!is(expr, Op::kProduct) || std::ranges::count_if(expr->parts, matrix) != 1) return expr;
  std::vector<Expr> factors;
  Expr of;
  for (const Expr& part : expr->parts) {
    if (matrix(part))
      of = part;
    else if (has_value(part))
      factors.push_back(part);
    else
      return expr;
  }
  std::vector<Expr> rows;
  for (const Expr& row : of->parts) {
    std::vector<Expr> entries;
    for (const Expr& entry : row->parts) {
      std::vector<Expr> product = factors;
      product.push_back(entry);
      entries.push_back(make(Op::kProduct, std::move(product)));
    }
    rows.push_back(make(Op::kList, std::move(entries)));
  }
  return make(Op::kMatrix, std::move(rows));
}

// Words without case, spaces and full stops. Where they hold a digit, the case counts, since 5 MW
// are not 5 mW, and so does what makes another number of the digits: a decimal point, and a space
// between digits and what is no letter.
std::string plain_words(std::string_view words) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const bool digits = std::ranges::any_of(words, digit);
  std::string plain;
  bool spaced = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto c = static_cast<unsigned char>(words[i]);
    const bool point = c == '.' && i + 1 < words.size() && digit(words[i + 1]);
    spaced = spaced || std::isspace(c) != 0;
    if (std::isspace(c) != 0 || (c == '.' && !point)) continue;
    const bool parts = spaced && !plain.empty() && !letter(c) && !letter(plain.back()) &&
                       (point || digit(c) || digit(plain.back()));
    if (parts) plain += ' ';
    spaced = false;
    plain += digits ? words[i] : static_cast<char>(std::tolower(c));
  }
  return plain;
}

}  // namespace

std::optional<std::string> words_of(const Expr& expr) {
  const bool capitals =
      is(expr, Op::kSymbol) && expr->name.size() > 1 &&
      std::ranges::all_of(expr->name, [](char c) { return c >= 'A' && c <= 'Z'; });
  if (is(expr, Op::kText) || capitals) return plain_words(expr->name);
  return std::nullopt;
}

bool has_open_arithmetic(const Expr& expr) { return any_part(expr, left_open); }

bool is_definition(const Expr& expr) {
  return is(expr, Op::kRelation) && expr->name == "=" && is_name(expr->parts[0]);
}

bool is_definitions(const Expr& expr) { return std::ranges::all_of(expr->parts, is_definition); }

bool named_items(const Expr& expr) {
  std::set<std::string> names;
  for (const Expr& part : expr->parts)
    if (is_definition(part)) names.insert(spelled(part->parts[0]));
  return names.size() > 1;
}

Expr without_signs(const Expr& expr) {
  if (!has_sign(expr)) return expr;
  std::vector<Expr> items;
  if (is_items(expr)) {
    for (const Expr& part : expr->parts) {
      items.push_back(with_sign(part, true));
      if (has_sign(part)) items.push_back(with_sign(part, false));
    }
    return make(expr->op, std::move(items), expr->name);
  }
  return make(Op::kList, {with_sign(expr, true), with_sign(expr, false)});
}

Expr without_units(const Expr& expr) {
  if (!any_part(expr, [](const Node& node) { return node.op == Op::kMeasure; })) return expr;
  if (is(expr, Op::kMeasure)) return without_units(expr->parts[0]);
  std::vector<Expr> parts;
  for (const Expr& part : expr->parts) parts.push_back(without_units(part));
  return make(expr->op, std::move(parts), expr->name);
}

Expr in_one_form(const Expr& expr) { return scaled_matrix(united_sets(named_point(expr))); }

Expr bare(const Expr& expr) {
  if (is_definition(expr)) return bare(expr->parts[1]);
  return is(expr, Op::kMeasure) || is(expr, Op::kPercent) ? bare(expr->parts[0]) : expr;
}

}  // namespace tandem::grade
