// A recursive-descent parser over tokens, with [] for what may be missing, {} for what may repeat:
//
//   answer    := relation { separator relation }
//   relation  := union { (= | ≠ | < | > | ≤ | ≥ | ∈) union }
//   union     := item { (∪ | \setminus) item }
//   item      := sum [%] [unit] | words
//   sum       := [sign] product { sign product }
//   product   := factor { [* | /] factor }
//   factor    := base { ! | ^ exponent | ° }
//   base      := number | name | ( list ) | \frac.. | \sqrt.. | function argument | matrix | …
//
// Every function returns none at the first token that it cannot account for, and at kDepthMax.
#include "actors/grade/read_answer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "actors/grade/token.h"
#include "actors/grade/unit.h"

namespace tandem::grade {
namespace {

using MaybeExpr = std::optional<Expr>;

constexpr std::string_view kFunctions[] = {"sin",    "cos",    "tan",    "cot",  "sec",  "csc",
                                           "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
                                           "ln",     "log",    "exp",    "abs"};

bool one_of(const auto& table, std::string_view word) {
  return std::ranges::find(table, word) != std::end(table);
}

bool digits_only(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

class AnswerReader {
 public:
  explicit AnswerReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  MaybeExpr answer() {
    std::vector<Expr> items;
    std::string word;  // between the items
    do {
      MaybeExpr item = relation();
      if (!item) return std::nullopt;
      items.push_back(*std::move(item));
    } while (separator(word));
    if (next().kind != TokenKind::kEnd) return std::nullopt;
    return items.size() == 1 ? items[0] : make(Op::kList, std::move(items), word);
  }

 private:
  const Token& next(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool sees(std::string_view text, std::size_t ahead = 0) const {
    const Token& token = next(ahead);
    return (token.kind == TokenKind::kSign || token.kind == TokenKind::kCommand) &&
           token.text == text;
  }
  bool take(std::string_view text) {
    if (!sees(text)) return false;
    ++at_;
    return true;
  }

  // Counts a level of nesting while it exists.
  struct Level {
    explicit Level(int& levels) : depth(levels) { ++depth; }
    ~Level() { --depth; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& depth;
  };

  // Takes what separates items; `word` becomes "and" or "or" where that is among it.
  bool separator(std::string& word) {
    const std::size_t begin = at_;
    for (;;) {
      if (take("and"))
        word = "and";
      else if (take("or"))
        word = "or";
      else if (!take(",") && !take(";"))
        return at_ > begin;
    }
  }

  // relation, union, item

  // "=" for =, "l" for ≤ and so on, as Op::kRelation names them; none if no relation follows.
  std::string relation_sign() {
    static constexpr std::array<std::array<std::string_view, 2>, 7> kSigns = {
        {{"=", "="}, {"!=", "!"}, {"<", "<"}, {">", ">"}, {"<=", "l"}, {">=", "g"}, {"in", "e"}}};
    for (const auto& [sign, name] : kSigns)
      if (take(sign)) return std::string(name);
    if (next().kind == TokenKind::kText && next().text == "in" && at_ > 0 &&
        tokens_[at_ - 1].kind == TokenKind::kLetter) {
      ++at_;
      return "e";
    }
    return {};
  }

  MaybeExpr relation() {
    const Level level(depth_);
    MaybeExpr side = depth_ <= kDepthMax ? united() : std::nullopt;
    if (!side) return std::nullopt;
    std::vector<Expr> sides{*side};
    std::vector<std::string> signs;
    for (std::string sign; !(sign = relation_sign()).empty();) {
      side = united();
      if (!side) return std::nullopt;
      sides.push_back(*side);
      signs.push_back(sign);
    }
    if (signs.empty()) return sides[0];
    // x = 10/2 = 5 says that x is 5.
    if (std::ranges::all_of(signs, [](const std::string& sign) { return sign == "="; }))
      return make(Op::kRelation, {sides.front(), sides.back()}, "=");
    std::vector<Expr> links;
    for (std::size_t i = 0; i < signs.size(); ++i)
      links.push_back(make(Op::kRelation, {sides[i], sides[i + 1]}, signs[i]));
    return links.size() == 1 ? links[0] : make(Op::kChain, std::move(links));
  }

  MaybeExpr united() {
    MaybeExpr first = item();
    if (!first) return std::nullopt;
    if (take("setminus")) {
      const MaybeExpr second = item();
      return second ? MaybeExpr(make(Op::kWithout, {*first, *second})) : std::nullopt;
    }
    std::vector<Expr> parts{*first};
    while (take("cup")) {
      MaybeExpr part = item();
      if (!part) return std::nullopt;
      parts.push_back(*std::move(part));
    }
    return parts.size() == 1 ? parts[0] : make(Op::kUnion, std::move(parts));
  }

  MaybeExpr item() {
    if (next().kind == TokenKind::kText) return words();
    MaybeExpr value = sum();
    if (!value) return std::nullopt;
    if (take(":")) {
      const MaybeExpr other = sum();
      if (!other || sees(":")) return std::nullopt;
      return make(Op::kRatio, {*value, *other});
    }
    if (take("%")) return make(Op::kPercent, {*value});
    return unit(*std::move(value));
  }

  MaybeExpr words() {
    std::string all;
    while (next().kind == TokenKind::kText) {
      if (!all.empty()) all += ' ';
      all += tokens_[at_++].text;
    }
    return make(Op::kText, {}, std::move(all));
  }

  // The value, with the unit that stands behind it as its name, where the unit is a known one.
  MaybeExpr unit(Expr value) {
    const bool element_of = next().text == "in" && next(1).kind != TokenKind::kEnd;  // n in [1, 2]
    if (next().kind != TokenKind::kText || element_of) return value;
    const MaybeExpr phrase = words();
    if (take("^")) {  // cm^2
      const bool braced = take("{");
      if (next().text != "2" && next().text != "3") return std::nullopt;
      ++at_;
      if (braced && !take("}")) return std::nullopt;
    }
    if (!is_unit_phrase((*phrase)->name)) return std::nullopt;
    return make(Op::kMeasure, {std::move(value)}, known_unit((*phrase)->name));
  }

  // sums and products

  MaybeExpr sum() {
    const Level level(depth_);
    if (depth_ > kDepthMax) return std::nullopt;
    std::vector<Expr> parts;
    for (bool first = true;; first = false) {
      const std::string sign = take("+")    ? "+"
                               : take("-")  ? "-"
                               : take("pm") ? "pm"
                               : take("mp") ? "mp"
                                            : "";
      if (sign.empty() && !first) break;
      MaybeExpr part = product_of_factors();
      if (!part) return std::nullopt;
      parts.push_back(sign == "-"    ? negative(*part)
                      : sign == "pm" ? make(Op::kPlusMinus, {*part}, "+")
                      : sign == "mp" ? make(Op::kPlusMinus, {*part}, "-")
                                     : *part);
    }
    return parts.size() == 1 ? parts[0] : make(Op::kSum, std::move(parts));
  }

  bool begins_base() const {
    const Token& token = next();
    if (token.kind == TokenKind::kLetter) return true;
    if (token.kind == TokenKind::kSign)
      return token.text == "(" || token.text == "{" || (token.text == "|" && bars_ == 0);
    if (token.kind != TokenKind::kCommand) return false;
    static constexpr std::string_view kBegins[] = {
        "frac",  "sqrt",  "rootsign",     "cuberootsign",      "pi",  "binom",    "lfloor",
        "lceil", "group", "begin matrix", "begin determinant", "vec", "overline", "bar",
        "hat"};
    return one_of(kBegins, token.text) || one_of(kFunctions, token.text);
  }

  MaybeExpr product_of_factors() {
    MaybeExpr first = mixed_number();
    if (!first) first = factor();
    if (!first) return std::nullopt;
    std::vector<Expr> parts{*first};
    bool divided = false;  // the last factor stands behind a slash
    bool starred = false;
    for (;;) {
      const bool times = take("*");
      const bool over = !times && take("/");
      if (!times && !over && !begins_base()) break;
      if (!times && !over && divided) return std::nullopt;  // 1/2x
      bool minus = false;
      if (times || over)
        while (take("-")) minus = !minus;
      if (over && open_argument_) return std::nullopt;  // \sin x/2
      MaybeExpr part = factor();
      if (!part) return std::nullopt;
      starred = starred || times;
      if (minus) part = negative(*part);
      parts.push_back(over ? make(Op::kPower, {*part, number("-1")}) : *part);
      divided = over;
    }
    if (parts.size() == 1) return parts[0];
    return make(Op::kProduct, std::move(parts), starred ? "*" : "");
  }

  // 1\frac{1}{2} and 1 1/2; none, with nothing taken, where something else stands here.
  MaybeExpr mixed_number() {
    if (next().kind != TokenKind::kNumber || !digits_only(next().text)) return std::nullopt;
    const std::size_t begin = at_;
    const Expr whole = number(tokens_[at_++].text);
    if (sees("frac")) {
      const std::vector<Token> kept = tokens_;
      ++at_;
      const MaybeExpr above = argument(), below = above ? argument() : std::nullopt;
      if (below && proper(*above, *below) && !sees("^")) return sum_of(whole, *above, *below);
      tokens_ = kept;
    } else if (next().kind == TokenKind::kNumber && next().spaced && sees("/", 1) &&
               next(2).kind == TokenKind::kNumber) {
      const Expr above = number(next().text), below = number(next(2).text);
      if (proper(above, below)) {
        at_ += 3;
        return sum_of(whole, above, below);
      }
    }
    at_ = begin;
    return std::nullopt;
  }
  static bool proper(const Expr& above, const Expr& below) {
    if (!is(above, Op::kNumber) || !is(below, Op::kNumber)) return false;
    const std::string &a = above->name, &b = below->name;
    return digits_only(a) && digits_only(b) &&
           (a.size() < b.size() || (a.size() == b.size() && a < b));
  }
  static Expr sum_of(const Expr& whole, const Expr& above, const Expr& below) {
    return make(Op::kSum, {whole, quotient(above, below)}, "mixed");
  }

  MaybeExpr factor() {
    const Level level(depth_);
    if (depth_ > kDepthMax) return std::nullopt;
    const bool is_function = one_of(kFunctions, next().text);
    MaybeExpr value = base();
    open_argument_ = open_argument_ && is_function;  // (\sin x)^2 and \frac{\sin x}{2} are closed
    for (bool powered = false; value;) {
      if (take("!")) {
        value = function("factorial", {*value});
      } else if (take("degree")) {
        if (functions_ > 0) value = product(*value, quotient(make(Op::kPi, {}), number("180")));
      } else if (sees("^")) {
        if (powered || open_argument_ || bare_function_) return std::nullopt;
        ++at_;
        const MaybeExpr exponent = power_of();
        if (!exponent) return std::nullopt;
        value = make(Op::kPower, {*value, *exponent});
        powered = true;
      } else {
        break;
      }
    }
    bare_function_ = false;
    return value;
  }

  MaybeExpr power_of() {
    if (sees("{")) return group();
    const bool minus = take("-");
    if (!minus) take("+");
    MaybeExpr exponent;
    if (next().kind == TokenKind::kNumber)
      exponent = number(tokens_[at_++].text);
    else
      exponent = base();
    return exponent && minus ? MaybeExpr(negative(*exponent)) : exponent;
  }

  // groups and arguments

  MaybeExpr group() {  // { sum }
    if (!take("{")) return std::nullopt;
    const int bars = std::exchange(bars_, 0);
    const MaybeExpr inside = next().kind == TokenKind::kText ? std::nullopt : sum();
    bars_ = bars;
    return inside && take("}") ? inside : std::nullopt;
  }

  // The argument of a LaTeX command: a group, or one digit, letter or command.
  MaybeExpr argument() {
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
  std::optional<std::vector<Expr>> items_until(const auto& closers, std::string& closer) {
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
  MaybeExpr bracket() {
    const std::string open = tokens_[at_++].text;
    static constexpr std::array<std::string_view, 2> kClosers = {")", "]"};
    std::string close;
    auto items = items_until(kClosers, close);
    if (!items) return std::nullopt;
    const bool alike = (open == "(") == (close == ")");
    if (items->size() > 1) return make(Op::kBracket, *std::move(items), open + close);
    return alike && has_value_or_sign((*items)[0]) ? MaybeExpr((*items)[0]) : std::nullopt;
  }
  static bool has_value_or_sign(const Expr& expr) {
    return !any_part(expr, [](const Node& node) { return node.op > Op::kPlusMinus; });
  }

  // What is open up to `closer`: \{ … \}, or \langle 1, 2 \rangle, which is the tuple (1, 2).
  MaybeExpr enclosed(std::string_view closer, Op op, const char* brackets) {
    const std::array<std::string_view, 1> closers = {closer};
    std::string close;
    auto items = items_until(closers, close);
    return items ? MaybeExpr(make(op, *std::move(items), brackets)) : std::nullopt;
  }

  // what a factor begins with

  MaybeExpr base() {
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

  MaybeExpr bars() {  // |x|
    ++at_;
    const int outer = std::exchange(bars_, 1);
    const MaybeExpr inside = sum();
    bars_ = outer;
    return inside && take("|") ? MaybeExpr(function("abs", {*inside})) : std::nullopt;
  }

  MaybeExpr number_or_other_base() {
    const std::string digits = tokens_[at_++].text;
    if (digits.find('.') != std::string::npos && (sees("overline") || sees("bar") || sees("dot"))) {
      ++at_;
      const bool braced = take("{");
      if (next().kind != TokenKind::kNumber || !digits_only(next().text)) return std::nullopt;
      const std::string period = tokens_[at_++].text;
      if (braced && !take("}")) return std::nullopt;
      return repeating(digits, period);
    }
    if (!take("_")) return number(digits);
    const std::optional<std::string> of = subscript();
    return of && digits_only(*of) ? MaybeExpr(symbol(digits + "_" + *of)) : std::nullopt;
  }

  // 0.1 and 6 make 0.1666…
  static MaybeExpr repeating(const std::string& digits, const std::string& period) {
    const std::size_t places = digits.size() - digits.find('.') - 1;
    const Expr nines = number(std::string(period.size(), '9') + std::string(places, '0'));
    return make(
        Op::kSum,
        {number(digits.back() == '.' ? digits + "0" : digits), quotient(number(period), nines)},
        "mixed");
  }

  // The subscript behind a _, as one word.
  std::optional<std::string> subscript() {
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

  MaybeExpr name() {
    std::string word = tokens_[at_++].text;
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

  MaybeExpr command() {
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
    if (name == "set" && take("endset")) return make(Op::kSet, {});
    if (name == "set") return enclosed("endset", Op::kSet, "");
    if (name == "langle") return enclosed("rangle", Op::kBracket, "()");
    if (name == "group") return group();
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
    return one_of(kFunctions, name) ? function_of(name) : std::nullopt;
  }

  // \sqrt{3}, \sqrt3, \sqrt[3]{8}, sqrt(3), √3. The root sign takes a whole number.
  MaybeExpr root(const std::string& name) {
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
  MaybeExpr function_of(const std::string& name) {
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

  MaybeExpr open_argument() {
    std::vector<Expr> parts;
    while (parts.empty() || (begins_base() && !one_of(kFunctions, next().text))) {
      if (!parts.empty() && sees("(")) return std::nullopt;  // \sin 2(x+1)
      const MaybeExpr part = factor();
      if (!part) return std::nullopt;
      parts.push_back(*part);
    }
    return parts.size() == 1 ? parts[0] : make(Op::kProduct, std::move(parts));
  }

  static MaybeExpr applied(std::string name, const Expr& of, const MaybeExpr& exponent,
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

  MaybeExpr matrix(const std::string& begin) {
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

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int bars_ = 0;                // 1 within |…|, where the next bar closes
  int functions_ = 0;           // arguments of functions that are being read
  bool open_argument_ = false;  // the last factor was a function without brackets
  bool bare_function_ = false;  // the last base was a function, and a power follows its brackets
};

}  // namespace

std::optional<Expr> read_answer(std::string_view text) {
  auto tokens = tokens_of(text);
  if (!tokens) return std::nullopt;
  return AnswerReader(*std::move(tokens)).answer();
}

}  // namespace tandem::grade
