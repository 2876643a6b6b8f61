// What a factor begins with: groups, brackets, sets, names, functions and matrices.
#include <algorithm>
#include <array>
#include <utility>

#include "actors/grade/answer_reader.h"
#include "actors/grade/read_answer.h"

namespace tandem::grade {
namespace {

constexpr std::string_view kFunctions[] = {"sin",    "cos",    "tan",    "cot",  "sec",  "csc",
                                           "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
                                           "ln",     "log",    "exp",    "abs"};

// The base of a number by its name, as in 1011_{two}.
constexpr std::string_view kBases[] = {"two",    "three",    "four",     "five",    "six",
                                       "seven",  "eight",    "nine",     "ten",     "eleven",
                                       "twelve", "thirteen", "fourteen", "fifteen", "sixteen"};

// Whether a token goes on with the digits of a number, as the F of 1F_{16} does.
bool is_digits_token(const Token& token) {
  if (token.kind == TokenKind::kNumber) return !token.spaced && digits_only(token.text);
  return token.kind == TokenKind::kLetter &&
         std::ranges::all_of(token.text, [](char c) { return c >= 'A' && c <= 'F'; });
}

std::string base_of_digits(const std::string& below) {
  const auto* const named = std::ranges::find(kBases, below);
  return named == std::end(kBases) ? below : std::to_string(named - std::begin(kBases) + 2);
}

}  // namespace

bool is_function_name(std::string_view name) {
  return std::ranges::find(kFunctions, name) != std::end(kFunctions);
}

bool digits_only(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

MaybeExpr AnswerReader::group() {  // { sum }
  if (!take("{")) return std::nullopt;
  const int bars = std::exchange(bars_, 0);
  const MaybeExpr inside = next().kind == TokenKind::kText ? std::nullopt : sum();
  bars_ = bars;
  return inside && take("}") ? inside : std::nullopt;
}

// The argument of a LaTeX command: a group, or one digit, letter or command.
MaybeExpr AnswerReader::argument() {
  if (sees("{")) return group();
  Token& token = tokens_[at_];
  if (token.kind == TokenKind::kNumber && digits_only(token.text)) {
    const Expr digit = number(token.text.substr(0, 1));
    token.text.erase(0, 1);
    if (token.text.empty()) ++at_;
    return digit;
  }
  if (token.kind == TokenKind::kLetter || token.kind == TokenKind::kCommand) return base();
  return std::nullopt;
}

// The items between brackets that are open already, up to a token of `closers`, which is taken.
std::optional<std::vector<Expr>> AnswerReader::items_until(
    std::initializer_list<std::string_view> closers, std::string& closer) {
  const int bars = std::exchange(bars_, 0);
  std::vector<Expr> items;
  do {
    MaybeExpr item = relation();
    if (!item) return std::nullopt;
    items.push_back(*std::move(item));
  } while (take(",") || take(";"));
  bars_ = bars;
  for (const std::string_view mark : closers)
    if (take(mark)) {
      closer = mark;
      return items;
    }
  return std::nullopt;
}

// ( … ) and [ … ]: a group where it has one part in equal brackets, else a tuple or an interval.
MaybeExpr AnswerReader::bracket() {
  const std::string open = tokens_[at_++].text;
  std::string close;
  auto items = items_until({")", "]"}, close);
  if (!items) return std::nullopt;
  const bool alike = (open == "(") == (close == ")");
  if (items->size() > 1) return make(Op::kBracket, *std::move(items), open + close);
  Expr inside = (*items)[0];
  if (is(inside, Op::kMeasure)) {
    // The unit becomes that of the whole item, which it is not for (5 m)^2 and (5 m)(5 m).
    std::size_t ahead = 0;
    while (sees("}", ahead)) ++ahead;
    if (!unit_.empty() || sees("^", ahead) || sees("!", ahead)) return std::nullopt;
    note_unit(inside->name);
    inside = inside->parts[0];
  }
  const bool closed = alike && (has_value_or_sign(inside) || is(inside, Op::kMatrix));
  return closed ? MaybeExpr(inside) : std::nullopt;
}

bool AnswerReader::has_value_or_sign(const Expr& expr) {
  return !any_part(expr, [](const Node& node) { return node.op > Op::kPlusMinus; });
}

// \{ 1, 2 \} or \{ x | x > 2 \}, behind its first brace.
MaybeExpr AnswerReader::set() {
  if (take("endset")) return make(Op::kSet, {});
  return begins_builder() ? set_builder() : enclosed("endset", Op::kSet, "");
}

bool AnswerReader::begins_builder() const {
  if (next().kind != TokenKind::kLetter) return false;
  const std::size_t bar = sees("in", 1) && sees("reals", 2) ? 3 : 1;
  return sees("|", bar) || sees("mid", bar) || sees(":", bar);
}

// The set of the numbers for which inequalities hold: these, of the one variable.
MaybeExpr AnswerReader::set_builder() {
  const std::string name = tokens_[at_].text;
  at_ += sees("in", 1) ? 4 : 2;
  std::vector<Expr> items;
  std::string word;
  do {
    const MaybeExpr item = relation();
    const bool inequality =
        item && (is(*item, Op::kChain) || (is(*item, Op::kRelation) && (*item)->name != "="));
    const bool of_name = inequality && any_part(*item, [&](const Node& node) {
                           return node.op == Op::kSymbol && node.name == name;
                         });
    if (!of_name) return std::nullopt;
    items.push_back(*item);
  } while (separator(word));
  if (!take("endset")) return std::nullopt;
  if (word.empty()) word = "and";
  return items.size() == 1 ? items[0] : make(Op::kList, std::move(items), word);
}

// What is open up to `closer`: \{ … \}, or \langle 1, 2 \rangle, which is the tuple (1, 2).
MaybeExpr AnswerReader::enclosed(std::string_view closer, Op op, const char* brackets) {
  std::string close;
  auto items = items_until({closer}, close);
  return items ? MaybeExpr(make(op, *std::move(items), brackets)) : std::nullopt;
}

MaybeExpr AnswerReader::base() {
  const Level level(depth_);
  if (depth_ > kDepthMax) return std::nullopt;
  const Token& token = next();
  switch (token.kind) {
    case TokenKind::kNumber:
      return number_or_other_base();
    case TokenKind::kLetter:
      return name();
    case TokenKind::kSign:
      if (token.text == "(" || token.text == "[") return bracket();
      if (token.text == "{") return group();
      if (token.text == "|") return bars();
      return std::nullopt;
    case TokenKind::kCommand:
      return command();
    case TokenKind::kText:
    case TokenKind::kEnd:
      break;
  }
  return std::nullopt;
}

MaybeExpr AnswerReader::bars() {  // |x|
  ++at_;
  const int outer = std::exchange(bars_, 1);
  const MaybeExpr inside = sum();
  bars_ = outer;
  if (!inside || !take("|")) return std::nullopt;
  if (is(*inside, Op::kMatrix)) return make(Op::kMatrix, (*inside)->parts, "|");
  return function("abs", {*inside});
}

MaybeExpr AnswerReader::number_or_other_base() {
  const std::string digits = tokens_[at_++].text;
  if (digits.find('.') != std::string::npos && (sees("overline") || sees("bar") || sees("dot"))) {
    ++at_;
    const bool braced = take("{");
    if (next().kind != TokenKind::kNumber || !digits_only(next().text)) return std::nullopt;
    const std::string period = tokens_[at_++].text;
    if (braced && !take("}")) return std::nullopt;
    return repeating(digits, period);
  }
  std::size_t end = at_;
  std::string all = digits;
  if (next().kind == TokenKind::kLetter)
    while (is_digits_token(tokens_[end])) all += tokens_[end++].text;
  if (end > at_ && sees("_", end - at_)) {  // 1F_{16} is one number, 2A_1 a product
    const std::size_t begin = std::exchange(at_, end + 1);
    const std::optional<std::string> of = subscript();
    const std::string base = of ? base_of_digits(*of) : "";
    if (base.size() == 2 && digits_only(base) && base > "10") return symbol(all + "_" + base);
    at_ = begin;
  }
  if (!take("_")) return number(digits);
  const std::optional<std::string> of = subscript();
  if (!of) return std::nullopt;
  const std::string base = base_of_digits(*of);
  if (base == "10") return number(digits);
  return digits_only(base) ? MaybeExpr(symbol(digits + "_" + base)) : std::nullopt;
}

// 0.1 and 6 make 0.1666…
MaybeExpr AnswerReader::repeating(const std::string& digits, const std::string& period) {
  const std::size_t places = digits.size() - digits.find('.') - 1;
  const Expr nines = number(std::string(period.size(), '9') + std::string(places, '0'));
  return make(
      Op::kSum,
      {number(digits.back() == '.' ? digits + "0" : digits), quotient(number(period), nines)},
      "mixed");
}

// The subscript behind a _, as one word.
std::optional<std::string> AnswerReader::subscript() {
  if (!take("{")) {
    const Token& token = tokens_[at_++];
    const bool word = token.kind == TokenKind::kNumber || token.kind == TokenKind::kLetter;
    return word ? std::optional(token.text) : std::nullopt;
  }
  std::string words;
  while (!sees("}")) {
    const Token& token = next();
    if (token.kind == TokenKind::kEnd || sees("{")) return std::nullopt;
    words += token.text;
    ++at_;
  }
  ++at_;
  return words;
}

MaybeExpr AnswerReader::name() {
  std::string word = tokens_[at_++].text;
  if (word == "m" && take("angle")) return angle();  // m\angle A
  const bool plain = !sees("_") && !sees("'");
  if (plain && word == "e") return make(Op::kEuler, {});
  if (plain && word == "i") return make(Op::kImaginary, {});
  if (take("_")) {
    const std::optional<std::string> below = subscript();
    if (!below) return std::nullopt;
    word += "_" + *below;
  }
  while (take("'")) word += "'";
  return symbol(word);
}

// \angle A and \angle ABC, as the name of a number.
MaybeExpr AnswerReader::angle() {
  const MaybeExpr of = next().kind == TokenKind::kLetter ? name() : std::nullopt;
  return of && is(*of, Op::kSymbol) ? MaybeExpr(symbol("angle " + (*of)->name)) : std::nullopt;
}

MaybeExpr AnswerReader::command() {
  const std::string name = tokens_[at_++].text;
  if (name == "frac" || name == "binom") {
    const MaybeExpr above = argument(), below = above ? argument() : std::nullopt;
    if (!below) return std::nullopt;
    return name == "frac" ? quotient(*above, *below) : function("binomial", {*above, *below});
  }
  if (name == "sqrt" || name == "rootsign" || name == "cuberootsign") return root(name);
  if (name == "pi") return make(Op::kPi, {});
  if (name == "infty") return make(Op::kInfinity, {});
  if (name == "emptyset") return make(Op::kSet, {});
  if (name == "reals") return make(Op::kReals, {});
  if (name == "set") return set();
  if (name == "langle") return enclosed("rangle", Op::kBracket, "()");
  if (name == "group") return group();
  if (name == "angle") return angle();
  if (name == "lfloor" || name == "lceil") {
    const MaybeExpr inside = sum();
    const bool floor = name == "lfloor";
    if (!inside || !take(floor ? "rfloor" : "rceil")) return std::nullopt;
    return function(floor ? "floor" : "ceil", {*inside});
  }
  if (name == "begin matrix" || name == "begin determinant") return matrix(name);
  if (name == "vec" || name == "overline" || name == "bar" || name == "hat") {
    const MaybeExpr inside = argument();
    return inside ? MaybeExpr(symbol(name + " " + spelled(*inside))) : std::nullopt;
  }
  return is_function_name(name) ? function_of(name) : std::nullopt;
}

// \sqrt{3}, \sqrt3, \sqrt[3]{8}, sqrt(3), √3. The root sign takes a whole number.
MaybeExpr AnswerReader::root(const std::string& name) {
  MaybeExpr index = number(name == "cuberootsign" ? "3" : "2");
  if (name == "sqrt" && take("[")) {
    index = sum();
    if (!index || !take("]")) return std::nullopt;
  }
  const bool whole = name != "sqrt" || sees("(");
  const bool digit = next().kind == TokenKind::kNumber;
  const MaybeExpr radicand = whole ? base() : argument();
  if (!radicand) return std::nullopt;
  if (!whole && digit && next().kind == TokenKind::kNumber) return std::nullopt;  // \sqrt12
  return make(Op::kRoot, {*radicand, *index});
}

// \sin x, \sin^2(x), \sin^{-1} x, \log_2 8, \ln|x|. Without brackets the argument is a product,
// and a slash, a power or a bracket behind it could belong to it or not.
MaybeExpr AnswerReader::function_of(const std::string& name) {
  MaybeExpr exponent, base_of_log;
  for (int i = 0; i < 2; ++i) {
    if (!exponent && take("^") && !(exponent = power_of())) return std::nullopt;
    if (name == "log" && !base_of_log && take("_") && !(base_of_log = argument()))
      return std::nullopt;
  }
  ++functions_;
  MaybeExpr of;
  const bool closed = sees("(") || sees("{") || sees("|");
  if (closed)
    of = base();
  else
    of = open_argument();
  --functions_;
  if (!of || !has_value_or_sign(*of)) return std::nullopt;
  if (closed && sees("^")) bare_function_ = true;  // \ln(x)^2
  open_argument_ = !closed;
  return applied(name, *of, exponent, base_of_log);
}

MaybeExpr AnswerReader::open_argument() {
  std::vector<Expr> parts;
  while (parts.empty() || (begins_base() && !is_function_name(next().text))) {
    if (!parts.empty() && sees("(")) return std::nullopt;  // \sin 2(x+1)
    const MaybeExpr part = factor();
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  return parts.size() == 1 ? parts[0] : make(Op::kProduct, std::move(parts));
}

MaybeExpr AnswerReader::applied(std::string name, const Expr& of, const MaybeExpr& exponent,
                                const MaybeExpr& base_of_log) {
  if (name == "exp" && !exponent) return make(Op::kPower, {make(Op::kEuler, {}), of});
  const bool inverse = exponent && spelled(*exponent) == spelled(negative(number("1")));
  if (inverse) {
    if (name != "sin" && name != "cos" && name != "tan") return std::nullopt;
    return function("arc" + name, {of});
  }
  Expr value = name == "log" ? function("log", {of, base_of_log ? *base_of_log : number("10")})
                             : function(name, {of});
  return exponent ? MaybeExpr(make(Op::kPower, {value, *exponent})) : value;
}

MaybeExpr AnswerReader::matrix(const std::string& begin) {
  const std::string kind = begin.substr(std::string_view("begin ").size());
  std::vector<Expr> rows;
  do {
    if (sees("end " + kind)) break;  // behind a last \\ there is no row
    std::vector<Expr> row;
    do {
      MaybeExpr entry = sum();
      if (!entry) return std::nullopt;
      row.push_back(*std::move(entry));
    } while (take("&"));
    rows.push_back(make(Op::kList, std::move(row)));
  } while (take("\\"));
  if (!take("end " + kind) || rows.empty()) return std::nullopt;
  for (const Expr& row : rows)
    if (row->parts.size() != rows[0]->parts.size()) return std::nullopt;
  return make(Op::kMatrix, std::move(rows), kind == "determinant" ? "|" : "");
}

}  // namespace tandem::grade
