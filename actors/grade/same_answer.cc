#include "actors/grade/same_answer.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "actors/grade/read_answer.h"
#include "actors/grade/real_set.h"
#include "actors/grade/same_expression.h"

namespace tandem::grade {
namespace {

constexpr std::size_t kItemsMax = 32;

// choices

struct Choice {
  char letter = 0;
  bool alone = false;  // nothing stands behind it
};

// "B", "(B)", "B.", "\text{(B)}" and, with words behind the letter, "(B) 5".
std::optional<Choice> choice_of(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\\') {
      const std::size_t begin = ++at;
      while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0) ++at;
      const std::string_view name = text.substr(begin, at - begin);
      if (name.empty() && at < text.size()) ++at;
      static constexpr std::string_view kFonts[] = {"text",  "textbf", "mathrm", "mathbf", "textrm",
                                                    "boxed", "left",   "right",  ""};
      if (std::ranges::find(kFonts, name) == std::end(kFonts) && plain.find(')') == plain.npos)
        return std::nullopt;
      continue;
    }
    const char c = text[at++];
    if (c != '{' && c != '}' && c != '$' && c != ' ' && c != '~') plain += c;
  }
  const bool bracket = plain.starts_with('(');
  const std::size_t at = bracket ? 1 : 0;
  if (at >= plain.size() || plain[at] < 'A' || plain[at] > 'J') return std::nullopt;
  const Choice choice{.letter = plain[at]};
  std::string_view rest = std::string_view(plain).substr(at + 1);
  if (bracket) {
    if (!rest.starts_with(')')) return std::nullopt;
    rest.remove_prefix(1);
    return Choice{choice.letter, rest.empty() || rest == "."};
  }
  if (rest.empty() || rest == "." || rest == ")" || rest == ":") return Choice{choice.letter, true};
  return std::nullopt;
}

// words

std::string plain_words(std::string_view words) {
  std::string plain;
  for (const unsigned char c : words)
    if (std::isspace(c) == 0 && c != '.') plain += static_cast<char>(std::tolower(c));
  return plain;
}

// The text of an answer that is only words or one-letter names, such as \text{even} or x.
std::optional<std::string> words_of(const Expr& expr) {
  if (is(expr, Op::kText)) return plain_words(expr->name);
  return std::nullopt;
}

// arithmetic that is not worked out

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

// Whether a sum or product of plain numbers is left open. Fractions, mixed numbers and scientific
// notation are numbers.
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

// the comparison

bool is_name(const Expr& expr) {
  if (is(expr, Op::kSymbol) || is(expr, Op::kText)) return true;
  // f(x)
  return is(expr, Op::kProduct) && expr->name.empty() && expr->parts.size() == 2 &&
         is(expr->parts[0], Op::kSymbol) &&
         (is(expr->parts[1], Op::kSymbol) || is(expr->parts[1], Op::kBracket));
}
bool is_definition(const Expr& expr) {
  return is(expr, Op::kRelation) && expr->name == "=" && is_name(expr->parts[0]);
}
bool is_items(const Expr& expr) { return is(expr, Op::kList) || is(expr, Op::kSet); }

bool has_sign(const Expr& expr) {
  return any_part(expr, [](const Node& node) { return node.op == Op::kPlusMinus; });
}

// ± stands for both values: a list of them. Within a list each item is taken apart.
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

  static bool is_definitions(const Expr& expr) {
    return std::ranges::all_of(expr->parts, is_definition);
  }
  // Whether the items define several names: x = 1, y = 2, and not x = 1 or x = 2.
  static bool named_items(const Expr& expr) {
    std::set<std::string> names;
    for (const Expr& part : expr->parts)
      if (is_definition(part)) names.insert(spelled(part->parts[0]));
    return names.size() > 1;
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

// The value that an answer gives, without its name, unit and sign of percent.
Expr bare(const Expr& expr) {
  if (is_definition(expr)) return bare(expr->parts[1]);
  return is(expr, Op::kMeasure) || is(expr, Op::kPercent) ? bare(expr->parts[0]) : expr;
}

}  // namespace

std::optional<bool> same_answer(std::string_view reference, std::string_view given) {
  if (const auto wanted = choice_of(reference); wanted && wanted->alone)
    if (const auto chosen = choice_of(given)) return wanted->letter == chosen->letter;
  const auto wanted = read_answer(reference);
  const auto answer = wanted ? read_answer(given) : std::nullopt;
  if (!answer) return std::nullopt;
  const Expr value = bare(*wanted);
  Work work;
  if (has_value(value) && any_part(*answer, left_open) && !any_part(value, left_open) &&
      rational_value(value, work))
    return false;
  return Comparison().same(without_signs(*wanted), without_signs(*answer));
}

}  // namespace tandem::grade
