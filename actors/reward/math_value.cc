// A recursive-descent parser over a text in a normal form: one spelling for each command, one kind
// of space. The parser gives up, with "not a number", at the first character that it cannot account
// for, at kValueDepthMax, and after kValueStepsMax operations, so that its time is bounded whatever
// a completion holds.
//
// The grammar, with [] for what may be missing:
//
//   value   := ( items ) | [ items ] | \{ items \} | items           a tuple, an interval, a set
//   item    := [letter =] number [%] [unit]
//   number  := [currency] [sign] [currency] term
//   term    := factor | factor proper | factor / factor | factor \times 10^n
//   proper  := \frac.. | digits / digits                             the 1/2 of 1 1/2
//   factor  := \frac.. | base [^ exponent]
//   base    := decimal | \sqrt.. | { number } | ( number )
//
// A comma is a separator of thousands or of items. Within brackets it separates items; elsewhere it
// belongs to a number where exactly three digits follow it.
#include "actors/reward/math_value.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <numeric>

#include "actors/grade/unit.h"

namespace tandem::reward {
namespace {

// These stand for signs in a text without control characters.
constexpr char kDegree = '\x01';
constexpr char kDollar = '\x03';

bool value_digit(char c) { return c >= '0' && c <= '9'; }
bool value_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

void replace_each(std::string& text, std::string_view what, std::string_view with) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(what, from)) != std::string::npos; from = at + what.size())
    out.append(text, from, at - from).append(with);
  text = std::move(out.append(text, from));
}

// The text in normal form: one spelling for each command, plain spaces, and no full stop at the
// end.
std::string normal_text(std::string_view raw) {
  std::string text(raw);
  using Pair = std::array<std::string_view, 2>;
  for (const auto& [what, with] : {Pair{"\\\\", "\x02"},  // a row break is no backslash and a space
                                   {"\\dfrac", "\\frac"},
                                   {"\\tfrac", "\\frac"},
                                   {"\\left", ""},
                                   {"\\right", ""},
                                   {"\\displaystyle", " "},
                                   {"\\%", "%"},
                                   {"\\$", "\x03"},
                                   {"\\(", " "},
                                   {"\\)", " "},
                                   {"\\[", " "},
                                   {"\\]", " "},
                                   {"\\!", ""},
                                   {"\\,", " "},
                                   {"\\;", " "},
                                   {"\\:", " "},
                                   {"\\ ", " "},
                                   {"\\qquad", " "},
                                   {"\\quad", " "},
                                   {"~", " "},
                                   {"{,}", ","},
                                   {"^{\\circ}", "\x01"},
                                   {"^\\circ", "\x01"},
                                   {"\\degree", "\x01"},
                                   {"\xC2\xB0", "\x01"},
                                   {"\xC2\xA0", " "},
                                   {"\xE2\x80\xAF", " "},
                                   {"\xC3\x97", "\\times "},
                                   {"\xE2\x88\x9E", "\\infty "},
                                   {"\xE2\x88\x92", "-"},
                                   {"\x02", "\\\\"}})
    replace_each(text, what, with);
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::isspace(c) != 0; }, ' ');
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  text.erase(0, begin);
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  // A $ without another one is no delimiter of a formula.
  if (std::ranges::count(text, '$') == 1) std::ranges::replace(text, '$', kDollar);
  return text;
}

// The square root of a whole number with at most 18 digits, where it is whole.
std::optional<std::uint64_t> whole_root(std::uint64_t square) {
  std::uint64_t low = 0, high = 1'000'000'000;
  while (low < high) {
    const std::uint64_t middle = (low + high + 1) / 2;
    if (middle * middle <= square)
      low = middle;
    else
      high = middle - 1;
  }
  return low * low == square ? std::optional(low) : std::nullopt;
}

std::optional<std::uint64_t> small_whole(const std::string& digits) {
  std::uint64_t value = 0;
  if (digits.size() > 18) return std::nullopt;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The root where it is a fraction; none where it is irrational, negative, or has more than 18
// digits above or below.
std::optional<Rational> exact_root(const Rational& square) {
  const auto above = small_whole(square.numerator), below = small_whole(square.denominator);
  if (square.negative || !above || !below) return std::nullopt;
  const std::uint64_t common = std::gcd(*above, *below);
  const auto top = whole_root(*above / common), bottom = whole_root(*below / common);
  if (!top || !bottom) return std::nullopt;
  return Rational{.numerator = std::to_string(*top), .denominator = std::to_string(*bottom)};
}

Rational inverse(const Rational& number) {  // `number` must not be zero
  return {.negative = number.negative,
          .numerator = number.denominator,
          .denominator = number.numerator};
}

constexpr std::string_view kTexts[] = {"\\text{", "\\mathrm{", "\\mbox{", "\\textrm{"};

class ValueParser {
 public:
  explicit ValueParser(std::string text) : text_(std::move(text)) {}

  std::optional<MathValue> whole() {
    if (auto value = bracketed('(')) return value;
    if (auto value = bracketed('[')) return value;
    if (auto value = bracketed('{')) return value;
    restart();
    MathValue value;
    do {
      const auto next = item();
      if (!next) return std::nullopt;
      value.items.push_back(*next);
    } while (take(","));
    if (!at_end() || too_large(value)) return std::nullopt;
    if (value.items.size() > 1) value.open = '{', value.close = '}', value.listed = true;
    return value;
  }

 private:
  using Number = std::optional<Rational>;

  void restart() {
    at_ = 0;
    depth_ = 0;
    steps_ = 0;
    separators_ = true;
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // Takes `what`, and the spaces before it, if it stands next.
  bool take(std::string_view what) {
    const std::size_t begin = at_;
    skip();
    const bool longer_command =
        what.size() > 1 && value_letter(what.back()) && value_letter(peek(what.size()));
    if (longer_command || !std::string_view(text_).substr(at_).starts_with(what)) {
      at_ = begin;
      return false;
    }
    at_ += what.size();
    return true;
  }

  // Bounds the work of a later comparison, which multiplies all of these digits.
  static bool too_large(const MathValue& value) {
    std::size_t digits = 0;
    for (const MathItem& item : value.items)
      digits += item.number.numerator.size() + item.number.denominator.size();
    return digits > 2 * kRationalDigitsMax;
  }

  // A tuple, an interval or a set such as (1, 2), [0, 1), \{1, 2\}; none where the text is
  // something else. One item in round brackets is no tuple: whole() reads it as a number.
  std::optional<MathValue> bracketed(char open) {
    restart();
    if (!take(open == '{' ? "\\{" : std::string_view(&open, 1))) return std::nullopt;
    separators_ = false;
    MathValue value{.open = open};
    do {
      const auto next = open == '{' ? item() : end_point();
      if (!next) return std::nullopt;
      value.items.push_back(*next);
    } while (take(","));
    if (open == '{')
      value.close = take("\\}") ? '}' : '\0';
    else
      value.close = take(")") ? ')' : take("]") ? ']' : '\0';
    const bool alone = open != '{' && value.items.size() == 1;
    if (value.close == '\0' || alone || !at_end() || too_large(value)) return std::nullopt;
    return value;
  }

  std::optional<MathItem> end_point() {
    const std::size_t begin = at_;
    const bool negative = take("-");
    if (!negative) take("+");
    if (take("\\infty")) return MathItem{.number = {.negative = negative}, .infinite = true};
    at_ = begin;
    return item();
  }

  std::optional<MathItem> item() {
    variable();
    MathItem item;
    Number number = signed_number(item.unit);
    if (!number) return std::nullopt;
    item.number = *std::move(number);
    item.percent = percent();
    if (!unit(item.unit) || (item.percent && !item.unit.empty())) return std::nullopt;
    return item;
  }

  // Takes %, percent and \text{ percent}, if one of them stands here, in any spelling.
  bool percent() {
    if (take("%")) return true;
    const std::size_t begin = at_;
    std::string bare;
    for (const bool second : {false, true}) {  // per cent
      skip();
      if (second) bare += ' ';
      while (value_letter(peek())) bare += text_[at_++];
      if (grade::is_percent_word(bare)) return true;
    }
    at_ = begin;
    for (const std::string_view open : kTexts)
      if (take(open)) {
        const auto close = text_.find('}', at_);
        if (close == std::string::npos) break;
        std::string_view words = std::string_view(text_).substr(at_, close - at_);
        while (words.starts_with(' ')) words.remove_prefix(1);
        while (words.ends_with(' ')) words.remove_suffix(1);
        if (!grade::is_percent_word(words)) break;
        at_ = close + 1;
        return true;
      }
    at_ = begin;
    return false;
  }

  // Skips "x =", where it stands.
  void variable() {
    skip();
    const std::size_t begin = at_;
    if (value_letter(peek()) && !value_letter(peek(1))) {
      ++at_;
      if (take("=")) return;
    }
    at_ = begin;
  }

  // Takes signs of a currency, and writes its name into `unit`.
  void currency(std::string& unit) {
    for (;;) {
      if (take(std::string_view(&kDollar, 1)))
        unit = "dollar";
      else if (take("\xE2\x82\xAC"))
        unit = "euro";
      else if (take("\xC2\xA3"))
        unit = "pound";
      else if (!take("$"))
        return;
    }
  }

  Number signed_number() {
    std::string unit;
    return signed_number(unit);
  }
  Number signed_number(std::string& unit) {
    currency(unit);
    const bool negative = take("-");
    if (!negative) take("+");
    currency(unit);
    Number number = term();
    if (number && negative && number->numerator != "0") number->negative = !number->negative;
    return number;
  }

  // Counts an operation and bounds the digits of its result.
  Number checked(Number number) {
    if (++steps_ > kValueStepsMax || !number || number->numerator.size() > kRationalDigitsMax ||
        number->denominator.size() > kRationalDigitsMax)
      return std::nullopt;
    return number;
  }
  Number quotient(const Number& above, const Number& below) {
    return above && below ? checked(divide(*above, *below)) : std::nullopt;
  }

  // A product is read only with a power of ten, as scientific notation writes it.
  Number term() {
    skip();
    const std::size_t begin = at_;
    Number number = factor();
    if (!number) return std::nullopt;
    const bool whole = std::all_of(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                   text_.begin() + static_cast<std::ptrdiff_t>(at_), value_digit);
    const std::size_t end = at_;
    // Only bare digits can begin a mixed number: 1.5 1/2 is no mixed number.
    if (whole && (text_.compare(at_, 5, "\\frac") == 0 || peek() == ' ')) {
      if (const Number part = proper_part()) return checked(add_magnitude(*number, *part));
      at_ = end;
    }
    if (take("/")) return quotient(number, factor());
    if (take("\\times") || take("\\cdot") || take("*")) {
      skip();
      if (text_.compare(at_, 3, "10^") != 0) return std::nullopt;
      const Number power = factor();
      return power && power->numerator != "0" ? quotient(number, inverse(*power)) : std::nullopt;
    }
    return number;
  }

  // The fraction of a mixed number: the 1/2 of 1 1/2. One or more is none: 1\frac{3}{2} is read
  // as a product elsewhere (actors/grade).
  Number proper_part() {
    if (take("\\frac")) return below_one(fraction());
    const Number above = decimal();
    if (!above || !take("/")) return std::nullopt;
    const Number below = decimal();
    return above->denominator == "1" && below && below->denominator == "1"
               ? below_one(quotient(above, below))
               : std::nullopt;
  }

  static Number below_one(Number part) {
    if (!part || part->negative) return std::nullopt;
    const std::string &above = part->numerator, &below = part->denominator;
    const bool less =
        above.size() < below.size() || (above.size() == below.size() && above < below);
    return less ? part : std::nullopt;
  }

  Number fraction() {
    const Number above = argument();
    const Number below = argument();
    if (peek() == '^') return std::nullopt;  // the power of the whole, or of the denominator?
    return quotient(above, below);
  }

  // The argument of a LaTeX command: a group in braces, or a single digit, as in \frac34.
  Number argument() {
    skip();
    if (value_digit(peek())) return parse_decimal(std::string_view(text_).substr(at_++, 1));
    return peek() == '{' ? group("{", "}") : std::nullopt;
  }

  Number group(std::string_view open, std::string_view close) {
    if (!take(open) || ++depth_ > kValueDepthMax) return std::nullopt;
    Number inside = signed_number();
    --depth_;
    return take(close) ? inside : std::nullopt;
  }

  Number factor() {
    skip();
    if (take("\\frac")) return fraction();
    Number base = this->base();
    if (!base || !take("^")) return base;
    const bool braced = take("{");
    const bool negative = take("-");
    if (!negative) take("+");
    skip();
    int exponent = 0;
    const char* const first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), exponent);
    if (end == first || error != std::errc() || !value_digit(*first) ||
        exponent > kValueExponentMax)
      return std::nullopt;
    at_ += static_cast<std::size_t>(end - first);
    if ((braced && !take("}")) || peek() == '^' || peek() == '.') return std::nullopt;
    return power(*base, negative ? -exponent : exponent);
  }

  Number power(Rational base, int exponent) {
    if (base.numerator == "0") return exponent > 0 ? Number(base) : std::nullopt;
    Rational total{.numerator = "1"};
    // Powers by repeated squaring, with divide() alone: dividing by the inverse multiplies.
    if (exponent >= 0) base = inverse(base);
    for (unsigned left = static_cast<unsigned>(std::abs(exponent)); left > 0; left /= 2) {
      if (left % 2 == 1) {
        const Number next = checked(divide(total, base));
        if (!next) return std::nullopt;
        total = *next;
      }
      if (left == 1) break;
      const Number squared = checked(divide(base, inverse(base)));
      if (!squared) return std::nullopt;
      base = *squared;
    }
    return total;
  }

  Number base() {
    if (value_digit(peek()) || peek() == '.') return decimal();
    if (take("\\sqrt")) {
      const Number square = argument();
      return square ? exact_root(*square) : std::nullopt;
    }
    for (const std::string_view open :
         {"{", "\\text{", "\\textbf{", "\\mathbf{", "\\mathrm{", "\\mbox{", "\\boxed{"})
      if (text_.compare(at_, open.size(), open) == 0) return group(open, "}");
    return group("(", ")");
  }

  Number decimal() {
    skip();
    std::string digits;
    const auto take_digits = [&] {
      while (value_digit(peek())) digits += text_[at_++];
    };
    take_digits();
    bool separated = false;
    while (separators_ && (separated || (!digits.empty() && digits.size() <= 3)) && peek() == ',' &&
           value_digit(peek(1)) && value_digit(peek(2)) && value_digit(peek(3)) &&
           !value_digit(peek(4))) {
      digits.append(text_, at_ + 1, 3);
      at_ += 4;
      separated = true;
    }
    if (separated && peek() == ',' && value_digit(peek(1))) return std::nullopt;
    if (peek() == '.') {
      digits += text_[at_++];
      take_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      digits += text_[at_++];
      if (peek() == '-' || peek() == '+') digits += text_[at_++];
      take_digits();
    }
    return parse_decimal(digits);
  }

  // Takes a unit, if there is one, and adds it to `unit`. False: something else stands here,
  // perhaps a factor.
  bool unit(std::string& unit) {
    const bool spaced = peek() == ' ';
    std::string words;
    bool marked = false;
    if (take(std::string_view(&kDegree, 1))) {
      words = take("C") ? "degree C" : take("F") ? "degree F" : "degree";
      return join_unit(unit, words);
    }
    currency(words);
    if (!words.empty()) return join_unit(unit, words);
    for (const std::string_view open : kTexts) {
      if (!take(open)) continue;
      const auto close = text_.find('}', at_);
      if (close == std::string::npos) return false;
      words = text_.substr(at_, close - at_);
      at_ = close + 1;
      marked = true;
      break;
    }
    if (!marked) {
      while (value_letter(peek()) || (peek() == ' ' && value_letter(peek(1))))
        words += text_[at_++];
      if (words.empty()) return true;
      if (!bare_unit(words, spaced)) return false;
    }
    return unit_power(words) && join_unit(unit, words);
  }

  static bool join_unit(std::string& unit, const std::string& words) {
    unit += (unit.empty() ? "" : " ") + words;
    return grade::read_unit(unit).has_value();
  }

  bool unit_power(std::string& words) {
    if (!take("^")) return true;
    const bool braced = take("{");
    if (peek() != '2' && peek() != '3') return false;
    words += std::string("^") + text_[at_++];
    return !braced || take("}");
  }

  // Bare words must be known abbreviations, or be of three letters and stand apart from the number,
  // since 5x and 5 pi are products.
  static bool bare_unit(const std::string& words, bool spaced) {
    for (std::size_t begin = 0; begin < words.size();) {
      const std::size_t end = std::min(words.find(' ', begin), words.size());
      const std::string word = words.substr(begin, end - begin);
      begin = end + 1;
      if (word.empty() || grade::is_unit_word(word)) continue;
      if (word.size() < 3 || !spaced) return false;
    }
    return true;
  }

  const std::string text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int steps_ = 0;
  bool separators_ = true;  // a comma may stand within a number
};

bool same_item(const MathItem& a, const MathItem& b, grade::PercentReading percent) {
  using enum grade::PercentReading;
  if (a.infinite || b.infinite)
    return a.infinite && b.infinite && a.number.negative == b.number.negative;
  if (!grade::units_agree(a.unit, b.unit)) return false;
  if (a.percent == b.percent) return a.number == b.number;
  const MathItem &share = a.percent ? a : b, &other = a.percent ? b : a;
  if (!other.unit.empty()) return false;  // 5% is not 5 cm
  const bool as_number =
      percent != kValue && (percent != kWhole || share.number.denominator == "1");
  if (as_number && share.number == other.number) return true;
  Rational hundredth = share.number;
  hundredth.denominator += "00";
  return percent != kNumber && hundredth == other.number;
}

}  // namespace

std::optional<MathValue> parse_value(std::string_view text) {
  if (text.size() > kValueBytesMax || text.find_first_of("\x01\x02\x03") != std::string_view::npos)
    return std::nullopt;
  return ValueParser(normal_text(text)).whole();
}

bool same_value(const MathValue& a, const MathValue& b, grade::PercentReading percent) {
  const auto same = [percent](const MathItem& x, const MathItem& y) {
    return same_item(x, y, percent);
  };
  if (a.open != b.open || a.close != b.close) return false;
  if (a.open != '{') return std::ranges::equal(a.items, b.items, same);
  if (a.listed && b.listed)  // each item has one of its own
    return std::ranges::is_permutation(a.items, b.items, same);
  const auto within = [&](const MathValue& all, const MathValue& some) {
    return std::ranges::all_of(some.items, [&](const MathItem& item) {
      return std::ranges::any_of(all.items,
                                 [&](const MathItem& other) { return same(item, other); });
    });
  };
  return within(a, b) && within(b, a);
}

std::string same_text_form(std::string_view raw) {
  std::string text = normal_text(raw);
  for (const std::string_view open : {"\\textbf{", "\\text{", "\\mathrm{"})
    for (std::size_t at; (at = text.find(open)) != std::string::npos;) {
      const auto close = text.find('}', at);
      if (close == std::string::npos) break;
      text.erase(close, 1).erase(at, open.size());
    }
  std::erase(text, '$');
  std::erase(text, kDollar);
  std::string form;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ') {
      form += text[i];
      continue;
    }
    const auto next = text.find_first_not_of(' ', i);
    if (next == std::string::npos || form.empty()) continue;
    // A space between two numbers or two names is part of the expression.
    if ((value_digit(form.back()) && value_digit(text[next])) ||
        (value_letter(form.back()) && value_letter(text[next])))
      form += ' ';
    i = next - 1;
  }
  return form;
}

}  // namespace tandem::reward
