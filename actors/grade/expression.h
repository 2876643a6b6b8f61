// The tree of an answer: numbers, names and operations, and what is made of them (tuples, sets,
// intervals, matrices, relations). A tree is never changed once it is made, and its parts may be
// shared. read_answer.h makes trees of texts and bounds their depth and size.
//
// A tree says how an answer is written, not what it equals: same_answer.h decides that.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::grade {

enum class Op {
  // what has a value
  kNumber,  // `name` has the digits, perhaps with a point
  kSymbol,  // a variable, a segment AB, or a number in another base such as 10_2; `name` tells which
  kPi,
  kEuler,      // e
  kImaginary,  // i
  kSum,        // of its parts; `name` is "mixed" for the 1 and 1/2 of a mixed number
  kProduct,    // of its parts; `name` is "*" where a sign stands between them
  kPower,      // parts: base, exponent
  kRoot,       // parts: radicand, a whole index; the root of an odd index of -8 is -2
  kFunction,   // `name` of its parts: sin, ln, log (number, base), abs, factorial, binomial, …
  kPlusMinus,  // `name` is "+" or "-", the sign that counts first; parts: what is added or taken
  // what is made of values
  kInfinity,
  kMeasure,  // `name` is a unit as read_unit() takes it; parts: the number beside the unit
  kPercent,  // parts: the number before the sign
  kBracket,  // a tuple or an interval; `name` has its two brackets, such as "[)"
  kSet,      // of its parts, in braces
  kList,     // of its parts, with commas or words between them
  kUnion,    // of its parts
  kWithout,  // the first part without the second
  kReals,
  kMatrix,    // `name` is "|" for a determinant and "" else; parts: rows, each a kList
  kRelation,  // `name` is = ! < > l (≤) g (≥) or e (∈); parts: its sides
  kChain,     // of its parts, relations that share sides: 1 < x and x < 2
  kRatio,     // a:b
  kText,      // words; `name` has them
};

struct Node;
using Expr = std::shared_ptr<const Node>;

struct Node {
  Op op = Op::kNumber;
  std::string name;
  std::vector<Expr> parts;
};

Expr make(Op op, std::vector<Expr> parts, std::string name = "");
Expr number(std::string digits);
Expr symbol(std::string name);
Expr function(std::string name, std::vector<Expr> parts);
Expr negative(Expr of);
Expr sum(Expr a, Expr b);
Expr difference(Expr a, Expr b);
Expr product(Expr a, Expr b);
Expr quotient(Expr a, Expr b);

inline bool is(const Expr& expr, Op op) { return expr->op == op; }
// Whether it is an expression, which has a value, and so are all of its parts.
bool has_value(const Expr& expr);
// Whether `found` is true of it or of any of its parts.
bool any_part(const Expr& expr, const auto& found) {
  if (found(*expr)) return true;
  for (const Expr& part : expr->parts)
    if (any_part(part, found)) return true;
  return false;
}
// The same tree with each ± as the sign `plus` says and each ∓ as the other one.
Expr with_sign(const Expr& expr, bool plus);

// How it is written, in one line, the same for the same tree.
std::string spelled(const Expr& expr);

}  // namespace tandem::grade
