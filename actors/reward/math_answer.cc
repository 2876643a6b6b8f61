#include "actors/reward/math_answer.h"

#include <array>
#include <cctype>

namespace tandem::actors {
namespace {

constexpr std::string_view kBoxed = "\\boxed";
constexpr std::string_view kMark = "####";

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

// The inside of the braces that open at `open`; none if they never close.
std::optional<std::string_view> braced(std::string_view text, std::size_t open) {
  if (open >= text.size() || text[open] != '{') return std::nullopt;
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;  // an escaped brace is text
    } else if (text[at] == '{') {
      ++depth;
    } else if (text[at] == '}' && --depth == 0) {
      return text.substr(open + 1, at - open - 1);
    }
  }
  return std::nullopt;
}

// Takes `\text{…}` and the like out, with what they hold: units and words.
void drop_command(std::string& text, std::string_view command) {
  for (std::size_t at; (at = text.find(command)) != std::string::npos;) {
    const auto inside = braced(text, at + command.size());
    text.erase(at, command.size() + (inside ? inside->size() + 2 : 0));
  }
}

// What does not change a value: LaTeX spacing, delimiters, units, a final full stop.
std::string plain(std::string_view raw) {
  std::string text(raw);
  for (const std::string_view command : {"\\text", "\\mathrm", "\\textbf"})
    drop_command(text, command);
  using Pair = std::array<std::string_view, 2>;
  for (const auto& [what, with] : {Pair{"\\dfrac", "\\frac"},
                                   {"\\tfrac", "\\frac"},
                                   {"\\left", ""},
                                   {"\\right", ""},
                                   {"\\%", "%"},
                                   {"\\$", ""},
                                   {"$", ""},
                                   {"\\(", ""},
                                   {"\\)", ""},
                                   {"\\[", ""},
                                   {"\\]", ""},
                                   {"\\!", ""},
                                   {"\\,", ""},
                                   {"\\;", ""},
                                   {"\\:", ""},
                                   {"{,}", ","},
                                   {"\xE2\x88\x92", "-"}})
    replace_all(text, what, with);
  std::string_view rest = trim(text);
  while (!rest.empty() && rest.back() == '.') rest = trim(rest.substr(0, rest.size() - 1));
  return std::string(rest);
}

// Digits in groups of three behind the first: 1,234,567.8. Other commas make it no number.
std::optional<std::string> without_separators(std::string_view text) {
  const auto first = text.find(',');
  if (first == std::string_view::npos) return std::string(text);
  std::size_t lead = 0;
  while (lead < text.size() && !is_digit(text[lead])) ++lead;
  if (first - lead < 1 || first - lead > 3 || first < lead) return std::nullopt;
  std::string digits(text.substr(0, first));
  std::size_t at = first;
  for (; at < text.size() && text[at] == ','; at += 4) {
    for (std::size_t i = 1; i <= 3; ++i)
      if (at + i >= text.size() || !is_digit(text[at + i])) return std::nullopt;
    digits += text.substr(at + 1, 3);
  }
  if (at < text.size() && is_digit(text[at])) return std::nullopt;
  return digits + std::string(text.substr(at));
}

std::optional<Rational> parse_plain(std::string_view text) {
  const auto digits = without_separators(trim(text));
  return digits ? parse_decimal(*digits) : std::nullopt;
}

std::optional<Rational> quotient(std::optional<Rational> above, std::optional<Rational> below) {
  if (!above || !below) return std::nullopt;
  return divide(*above, *below);
}

// \frac{a}{b} or \frac ab from the start of `text` to its end.
std::optional<Rational> parse_frac(std::string_view text) {
  constexpr std::string_view kFrac = "\\frac";
  if (!text.starts_with(kFrac)) return std::nullopt;
  text = trim(text.substr(kFrac.size()));
  if (text.size() == 2 && is_digit(text[0]) && is_digit(text[1]))
    return quotient(parse_decimal(text.substr(0, 1)), parse_decimal(text.substr(1)));
  const auto above = braced(text, 0);
  if (!above) return std::nullopt;
  const std::string_view rest = trim(text.substr(above->size() + 2));
  const auto below = braced(rest, 0);
  if (!below || below->size() + 2 != rest.size()) return std::nullopt;
  return quotient(parse_plain(*above), parse_plain(*below));
}

std::optional<Rational> parse_fraction(std::string_view text) {
  if (text.starts_with("\\frac")) return parse_frac(text);
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return parse_plain(text);
  return quotient(parse_plain(text.substr(0, slash)), parse_plain(text.substr(slash + 1)));
}

// "1 1/2", "1\frac{1}{2}": a whole number, then a positive fraction.
std::optional<Rational> parse_mixed(std::string_view text) {
  const auto gap = std::min(text.find(' '), text.find("\\frac"));
  if (gap == std::string_view::npos || gap == 0) return std::nullopt;
  const std::string_view rest = trim(text.substr(gap));
  if (rest.find('/') == std::string_view::npos && !rest.starts_with("\\frac")) return std::nullopt;
  const auto whole = parse_plain(text.substr(0, gap));
  const auto part = parse_fraction(rest);
  if (!whole || whole->denominator != "1" || !part || part->negative || rest.starts_with('+'))
    return std::nullopt;
  return add_magnitude(*whole, *part);
}

// The last run of characters that can be a number by itself, with its sign and percent.
std::optional<std::string> last_number(std::string_view text) {
  auto end = text.find_last_of("0123456789");
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  const auto part_of_number = [&](std::size_t at) {
    const char c = text[at];
    const bool digit_before = at > 0 && is_digit(text[at - 1]);
    const bool digit_after = at + 1 < text.size() && is_digit(text[at + 1]);
    if (is_digit(c)) return true;
    if (c == '.') return digit_after;
    if (c == ',' || c == '/') return digit_before && digit_after;
    // A minus between two numbers is a difference or a range, not a sign.
    if (c == '-')
      return digit_after && !(at > 0 && (is_digit(text[at - 1]) || text[at - 1] == ')'));
    return false;
  };
  while (begin > 0 && part_of_number(begin - 1)) {
    --begin;
    if (text[begin] == '-') break;
  }
  ++end;
  if (end < text.size() && text[end] == '%') ++end;
  if (text.substr(end).starts_with("\\%")) end += 2;
  return std::string(text.substr(begin, end - begin));
}

}  // namespace

std::optional<Rational> parse_number(std::string_view raw) {
  const std::string text = plain(raw);
  std::string_view rest = text;
  const bool percent = rest.ends_with('%');
  if (percent) rest = trim(rest.substr(0, rest.size() - 1));
  bool negative = false;
  if (rest.starts_with("-\\frac") || rest.starts_with("- ")) {
    negative = true;
    rest = trim(rest.substr(1));
  }
  std::optional<Rational> number = parse_fraction(rest);
  if (!number) number = parse_mixed(rest);
  if (!number) return std::nullopt;
  if (negative && number->numerator != "0") number->negative = !number->negative;
  if (percent) number->denominator += "00";
  return number;
}

std::optional<std::string> final_answer(std::string_view solution) {
  for (auto at = solution.rfind(kBoxed); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : solution.rfind(kBoxed, at - 1)) {
    std::size_t open = at + kBoxed.size();
    while (open < solution.size() && solution[open] == ' ') ++open;
    if (const auto inside = braced(solution, open)) return std::string(trim(*inside));
  }
  if (const auto at = solution.rfind(kMark); at != std::string_view::npos) {
    const std::string_view line = solution.substr(at + kMark.size());
    const std::string_view answer = trim(line.substr(0, line.find('\n')));
    if (!answer.empty()) return std::string(answer);
  }
  if (parse_number(solution)) return std::string(trim(solution));
  return last_number(solution);
}

bool math_equal(std::string_view reference, std::string_view completion) {
  const bool marked = reference.find(kBoxed) != std::string_view::npos ||
                      reference.find(kMark) != std::string_view::npos;
  const std::string wanted =
      marked ? final_answer(reference).value_or(std::string(reference)) : std::string(reference);
  const std::optional<std::string> given = final_answer(completion);
  const auto number = parse_number(wanted);
  if (number) {
    if (!given) return false;
    auto other = parse_number(*given);
    if (!other)  // "x = 5", "72 clips"
      if (const auto last = last_number(*given)) other = parse_number(*last);
    return other && *number == *other;
  }
  const auto compact = [](std::string_view text) {
    std::string letters = plain(text);
    std::erase_if(letters, [](unsigned char c) { return std::isspace(c) != 0; });
    return letters;
  };
  // A name or an expression has no number to look for: without a mark the whole text is the answer.
  const bool given_is_marked = completion.find(kBoxed) != std::string_view::npos ||
                               completion.find(kMark) != std::string_view::npos;
  return compact(wanted) == compact(given_is_marked && given ? *given : std::string(completion));
}

}  // namespace tandem::actors
