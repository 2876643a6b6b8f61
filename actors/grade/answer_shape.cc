#include "actors/grade/answer_shape.h"

#include <algorithm>
#include <cctype>
#include <set>
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
  // (x, y)
  const auto symbol = [](const Expr& part) { return is(part, Op::kSymbol); };
  if (is(expr, Op::kBracket)) return std::ranges::all_of(expr->parts, symbol);
  // f(x)
  return is(expr, Op::kProduct) && expr->name.empty() && expr->parts.size() == 2 &&
         is(expr->parts[0], Op::kSymbol) &&
         (is(expr->parts[1], Op::kSymbol) || is(expr->parts[1], Op::kBracket));
}
bool has_sign(const Expr& expr) {
  return any_part(expr, [](const Node& node) { return node.op == Op::kPlusMinus; });
}

}  // namespace

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

std::string plain_words(std::string_view words) {
  std::string plain;
  for (const unsigned char c : words)
    if (std::isspace(c) == 0 && c != '.') plain += static_cast<char>(std::tolower(c));
  return plain;
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

Expr bare(const Expr& expr) {
  if (is_definition(expr)) return bare(expr->parts[1]);
  return is(expr, Op::kMeasure) || is(expr, Op::kPercent) ? bare(expr->parts[0]) : expr;
}

}  // namespace tandem::grade
