// From an answer down to its factors. Signs that name a unit, $ and °, may stand anywhere in an
// item; they are noted while it is read and join the words of the unit behind it.
#include "actors/grade/read_answer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "actors/grade/answer_reader.h"
#include "actors/grade/unit.h"

namespace tandem::grade {
namespace {

struct DigitPlace {
  std::size_t token;
  std::size_t digit = 0;  // of a token that is a number
};

// The digits of an argument of \frac, {12} or a single one, with `place` moved behind it; empty
// where something else stands.
std::string digits_of_argument(const std::vector<Token>& tokens, DigitPlace& place) {
  const auto sees = [&](std::string_view sign) {
    const Token& token = tokens[place.token];
    return token.kind == TokenKind::kSign && token.text == sign;
  };
  std::size_t braces = 0;
  for (; sees("{"); ++braces) ++place.token;
  const Token& token = tokens[place.token];
  if (token.kind != TokenKind::kNumber || !digits_only(token.text)) return {};
  if (braces == 0) {
    const std::size_t digit = place.digit++;
    if (place.digit == token.text.size()) place = {.token = place.token + 1};
    return token.text.substr(digit, 1);
  }
  ++place.token;
  for (; braces > 0; --braces, ++place.token)
    if (!sees("}")) return {};
  return token.text;
}

}  // namespace

MaybeExpr AnswerReader::answer() {
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

const Token& AnswerReader::next(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool AnswerReader::sees(std::string_view text, std::size_t ahead) const {
  const Token& token = next(ahead);
  return (token.kind == TokenKind::kSign || token.kind == TokenKind::kCommand) &&
         token.text == text;
}

bool AnswerReader::take(std::string_view text) {
  if (!sees(text)) return false;
  ++at_;
  return true;
}

// Takes what separates items; `word` becomes "and" or "or" where that is among it.
bool AnswerReader::separator(std::string& word) {
  const std::size_t begin = at_;
  for (;;) {
    if (sees("and") || sees("or")) {
      const std::string& found = tokens_[at_++].text;
      word = word.empty() || word == found ? found : "and or";
    } else if (!take(",") && !take(";"))
      return at_ > begin;
  }
}

// "=" for =, "l" for ≤ and so on, as Op::kRelation names them; none if no relation follows.
std::string AnswerReader::relation_sign() {
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

MaybeExpr AnswerReader::relation() {
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

MaybeExpr AnswerReader::united() {
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

MaybeExpr AnswerReader::item() {
  if (next().kind == TokenKind::kText) return words();
  const std::string outer = std::exchange(unit_, "");
  MaybeExpr value = item_with_unit();
  unit_ = outer;
  return value;
}

MaybeExpr AnswerReader::item_with_unit() {
  MaybeExpr value = sum();
  if (!value) return std::nullopt;
  if (take(":")) {
    const MaybeExpr other = sum();
    if (!other || sees(":")) return std::nullopt;
    return unit(make(Op::kRatio, {*value, *other}));
  }
  if (!take("%")) return unit(*std::move(value));
  return unit_.empty() ? MaybeExpr(make(Op::kPercent, {*value})) : std::nullopt;
}

MaybeExpr AnswerReader::words() {
  std::string all;
  while (next().kind == TokenKind::kText) {
    if (!all.empty()) all += ' ';
    all += tokens_[at_++].text;
  }
  return make(Op::kText, {}, std::move(all));
}

void AnswerReader::note_unit(std::string_view name) {
  if (unit_ == name) return;
  if (!unit_.empty()) unit_ += ' ';
  unit_ += name;
}

void AnswerReader::currency() {
  while (sees("dollar") || sees("euro") || sees("pound")) note_unit(tokens_[at_++].text);
}

// Takes words of a unit. A bare word must stand apart from the number, or be the short name of a
// unit, since 2abc is a product.
bool AnswerReader::unit_words(std::string& phrase) {
  const Token& first = next();
  if (!first.marked && !first.spaced && !is_unit_word(first.text)) return false;
  phrase += ' ' + (*words())->name;
  return true;
}

// Takes the 2 of cm^2 and the -1 of s^{-1}.
bool AnswerReader::unit_power(std::string& phrase) {
  const bool braced = take("{");
  const bool minus = take("-");
  if (!digits_only(next().text) || next().text.size() > 1) return false;
  phrase += (minus ? "^-" : "^") + tokens_[at_++].text;
  return !braced || take("}");
}

// Takes \frac{\text{km}}{\text{h}} behind its name.
bool AnswerReader::unit_fraction(std::string& phrase) {
  const bool above = take("{") && next().kind == TokenKind::kText && unit_words(phrase);
  phrase += '/';
  return above && take("}") && take("{") && next().kind == TokenKind::kText && unit_words(phrase) &&
         take("}");
}

// Takes a further piece of a unit; none where something else stands here, false for a piece that
// is not complete. A slash and a power belong to a unit only behind its first word.
std::optional<bool> AnswerReader::unit_piece(std::string& phrase) {
  if (next().kind == TokenKind::kText) return unit_words(phrase);
  if (take("frac")) return unit_fraction(phrase);
  if (phrase == unit_) return std::nullopt;
  if (take("^")) return unit_power(phrase);
  if (!sees("/")) return std::nullopt;
  const TokenKind kind = next(1).kind;
  if (kind != TokenKind::kText && kind != TokenKind::kLetter) return std::nullopt;
  phrase += "/" + next(1).text;  // km/h
  at_ += 2;
  return true;
}

// The value, with the unit that stands beside it as its name.
MaybeExpr AnswerReader::unit(Expr value) {
  std::string phrase = unit_;
  const bool element_of = next().text == "in" && next(1).kind != TokenKind::kEnd &&
                          tokens_[at_ - 1].kind == TokenKind::kLetter;  // n in [1, 2]
  while (!element_of) {
    const std::optional<bool> whole = unit_piece(phrase);
    if (!whole) break;
    if (!*whole) return std::nullopt;
  }
  if (phrase.empty()) return value;
  if (!read_unit(phrase)) return std::nullopt;
  return make(Op::kMeasure, {std::move(value)}, phrase);
}

MaybeExpr AnswerReader::sum() {
  const Level level(depth_);
  if (depth_ > kDepthMax) return std::nullopt;
  std::vector<Expr> parts;
  for (bool first = true;; first = false) {
    currency();
    const std::string sign = take("+")    ? "+"
                             : take("-")  ? "-"
                             : take("pm") ? "pm"
                             : take("mp") ? "mp"
                                          : "";
    if (sign.empty() && !first) break;
    currency();
    MaybeExpr part = product_of_factors();
    if (!part) return std::nullopt;
    parts.push_back(sign == "-"    ? negative(*part)
                    : sign == "pm" ? make(Op::kPlusMinus, {*part}, "+")
                    : sign == "mp" ? make(Op::kPlusMinus, {*part}, "-")
                                   : *part);
  }
  return parts.size() == 1 ? parts[0] : make(Op::kSum, std::move(parts));
}

bool AnswerReader::begins_base() const {
  const Token& token = next();
  if (token.kind == TokenKind::kLetter) return true;
  if (token.kind == TokenKind::kSign)
    return token.text == "(" || token.text == "{" || (token.text == "|" && bars_ == 0);
  if (token.kind != TokenKind::kCommand) return false;
  static constexpr std::string_view kBegins[] = {
      "frac",  "sqrt",  "rootsign",     "cuberootsign",      "pi",  "binom",    "lfloor",
      "lceil", "group", "begin matrix", "begin determinant", "vec", "overline", "bar",
      "hat",   "angle"};
  if (token.text == "frac" && next(1).text == "{" && next(2).kind == TokenKind::kText)
    return false;  // \frac{\text{km}}{\text{h}} is a unit
  return std::ranges::find(kBegins, token.text) != std::end(kBegins) ||
         is_function_name(token.text);
}

MaybeExpr AnswerReader::product_of_factors() {
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
MaybeExpr AnswerReader::mixed_number() {
  if (next().kind != TokenKind::kNumber || !digits_only(next().text)) return std::nullopt;
  const std::size_t begin = at_;
  const Expr whole = number(tokens_[at_++].text);
  if (sees("frac")) {
    // A look ahead, since reading the arguments twice at each level takes exponential time.
    DigitPlace end{.token = at_ + 1};
    const Expr above = number(digits_of_argument(tokens_, end));
    const Expr below = number(digits_of_argument(tokens_, end));
    const bool raised = end.digit == 0 && sees("^", end.token - at_);
    if (proper(above, below) && !raised) {
      at_ = end.token;
      tokens_[at_].text.erase(0, end.digit);
      return sum_of(whole, above, below);
    }
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

bool AnswerReader::proper(const Expr& above, const Expr& below) {
  if (!is(above, Op::kNumber) || !is(below, Op::kNumber)) return false;
  const std::string &a = above->name, &b = below->name;
  return digits_only(a) && digits_only(b) &&
         (a.size() < b.size() || (a.size() == b.size() && a < b));
}

Expr AnswerReader::sum_of(const Expr& whole, const Expr& above, const Expr& below) {
  return make(Op::kSum, {whole, quotient(above, below)}, "mixed");
}

MaybeExpr AnswerReader::factor() {
  const Level level(depth_);
  if (depth_ > kDepthMax) return std::nullopt;
  const bool is_function = is_function_name(next().text);
  MaybeExpr value = base();
  open_argument_ = open_argument_ && is_function;  // (\sin x)^2 and \frac{\sin x}{2} are closed
  for (bool powered = false; value;) {
    if (take("!")) {
      value = function("factorial", {*value});
    } else if (take("degree")) {
      degree(*value);
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

// In the argument of a function an angle is a number; else the sign names a unit, perhaps of a
// temperature: 20^\circ C.
void AnswerReader::degree(Expr& value) {
  if (functions_ > 0) {
    value = product(value, quotient(make(Op::kPi, {}), number("180")));
    return;
  }
  note_unit("degree");
  const bool temperature =
      next().kind == TokenKind::kLetter && (next().text == "C" || next().text == "F");
  if (temperature) note_unit(tokens_[at_++].text);
}

MaybeExpr AnswerReader::power_of() {
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

std::optional<Expr> read_answer(std::string_view text) {
  auto tokens = tokens_of(text);
  if (!tokens) return std::nullopt;
  return AnswerReader(*std::move(tokens)).answer();
}

}  // namespace tandem::grade
