#include "actors/grade/expression.h"

#include <algorithm>

namespace tandem::grade {

Expr make(Op op, std::vector<Expr> parts, std::string name) {
  return std::make_shared<const Node>(
      Node{.op = op, .name = std::move(name), .parts = std::move(parts)});
}

Expr number(std::string digits) { return make(Op::kNumber, {}, std::move(digits)); }
Expr symbol(std::string name) { return make(Op::kSymbol, {}, std::move(name)); }
Expr function(std::string name, std::vector<Expr> parts) {
  return make(Op::kFunction, std::move(parts), std::move(name));
}
Expr negative(Expr of) {
  // The sign joins the product that it stands before, so that chains of signs stay flat.
  std::vector<Expr> parts{number("-1")};
  std::string name = is(of, Op::kProduct) ? of->name : "";
  if (is(of, Op::kProduct))
    parts.insert(parts.end(), of->parts.begin(), of->parts.end());
  else
    parts.push_back(std::move(of));
  return make(Op::kProduct, std::move(parts), std::move(name));
}
Expr sum(Expr a, Expr b) { return make(Op::kSum, {std::move(a), std::move(b)}); }
Expr difference(Expr a, Expr b) { return sum(std::move(a), negative(std::move(b))); }
Expr product(Expr a, Expr b) { return make(Op::kProduct, {std::move(a), std::move(b)}); }
Expr quotient(Expr a, Expr b) {
  return product(std::move(a), make(Op::kPower, {std::move(b), number("-1")}));
}

bool has_value(const Expr& expr) {
  return expr->op < Op::kPlusMinus && std::ranges::all_of(expr->parts, has_value);
}

Expr with_sign(const Expr& expr, bool plus) {
  std::vector<Expr> parts;
  for (const Expr& part : expr->parts) parts.push_back(with_sign(part, plus));
  if (expr->op == Op::kPlusMinus)
    return (expr->name == "+") == plus ? parts[0] : negative(parts[0]);
  return make(expr->op, std::move(parts), expr->name);
}

std::string spelled(const Expr& expr) {
  std::string text = std::to_string(static_cast<int>(expr->op)) + ":" + expr->name;
  if (expr->parts.empty()) return text;
  text += '(';
  for (const Expr& part : expr->parts) text += spelled(part) + ' ';
  text.back() = ')';
  return text;
}

}  // namespace tandem::grade
