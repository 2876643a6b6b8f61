// final_answer() looks for a mark (\boxed, ####), then for a value, then for a last number. The
// last number is the risky case: most texts end in some number that is part of something else. So a
// number counts only where its neighbours on both sides may stand beside a final answer. Where that
// is in doubt there is no answer.
//
// Markup is overwritten by as many spaces, so that offsets into the text stay valid.
//
// math_equal() compares plain numbers as such (math_value.h), which takes a microsecond. Everything
// else is compared by actors/grade, and what that does not read, as text.
#include "actors/reward/math_answer.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "actors/grade/answer_form.h"
#include "actors/grade/choice.h"
#include "actors/grade/read_answer.h"
#include "actors/grade/same_answer.h"
#include "actors/grade/unit.h"
#include "actors/grade/value_form.h"

namespace tandem::reward {
namespace {

constexpr std::string_view kBoxes[] = {"\\boxed", "\\fbox"};
constexpr std::string_view kMark = "####";
constexpr int kBoxesMax = 32;               // that are joined to one answer
constexpr std::size_t kPartBytesMax = 128;  // a longer box is compared with the last one as text
constexpr std::string_view kSpace = " \t\r\n";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// A \boxed or \fbox: where its name begins, and where its inside does.
struct Box {
  std::size_t name = 0, inside = 0;
};
std::optional<Box> last_box(std::string_view text) {
  std::optional<Box> last;
  for (const std::string_view box : kBoxes)
    if (const auto at = text.rfind(box); at != std::string_view::npos && (!last || at > last->name))
      last = Box{.name = at, .inside = at + box.size()};
  return last;
}

bool marked(std::string_view text) {
  return last_box(text) || text.find(kMark) != std::string_view::npos;
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

// Overwrites <answer>, </b> and ** by spaces. A ** between two values is a power and stays.
std::string without_markup(std::string_view text) {
  std::string plain(text);
  for (std::size_t at = 0; (at = plain.find('<', at)) != std::string::npos; ++at) {
    std::size_t end = at + 1;
    if (end < plain.size() && plain[end] == '/') ++end;
    const std::size_t name = end;
    while (end < plain.size() && is_letter(plain[end])) ++end;
    if (end - name < 2 || end >= plain.size() || plain[end] != '>') continue;
    plain.replace(at, end + 1 - at, end + 1 - at, ' ');
  }
  for (std::size_t at = 0; (at = plain.find("**", at)) != std::string::npos; at += 2) {
    const bool after_value =
        at > 0 && (std::isalnum(static_cast<unsigned char>(plain[at - 1])) || plain[at - 1] == ')');
    const bool before_value =
        at + 2 < plain.size() && std::isalnum(static_cast<unsigned char>(plain[at + 2])) != 0;
    if (!after_value || !before_value) plain.replace(at, 2, 2, ' ');  // 2**3 is a power
  }
  return plain;
}

// A piece of a text [begin, end), and the same with its delimiters [outer_begin, outer_end).
struct Place {
  std::size_t begin = 0, end = 0;
  std::size_t outer_begin = 0, outer_end = 0;
};
// The inside of the formula around `at`: $…$, $$…$$, \(…\) or \[…\]; none if `at` is in no formula.
// Scans from the start of the text, because only that tells an opening $ from a closing one.
std::optional<Place> formula_around(std::string_view text, std::size_t at) {
  std::size_t open = std::string_view::npos, width = 0;
  std::string_view close;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (open != std::string_view::npos && rest.starts_with(close)) {
      if (at < i && at > open) return Place{open + width, i, open, i + close.size()};
      if (at < i) return std::nullopt;
      i += close.size() - 1;
      open = std::string_view::npos;
      continue;
    }
    if (open == std::string_view::npos) {
      width = rest.starts_with("$$") || rest.starts_with("\\(") || rest.starts_with("\\[") ? 2
              : rest.starts_with("$")                                                      ? 1
                                                                                           : 0;
      if (width > 0) {
        open = i;
        close = rest[0] == '$' ? rest.substr(0, width) : rest[1] == '(' ? "\\)" : "\\]";
        i += width - 1;
        continue;
      }
    }
    if (text[i] == '\\') ++i;
  }
  return std::nullopt;
}

// The word around `at`; white space in braces and brackets does not end it.
Place word_around(std::string_view text, std::size_t at) {
  const auto space = [](char c) { return kSpace.find(c) != std::string_view::npos; };
  Place word{.begin = at, .end = at + 1};
  int depth = 0;
  for (; word.begin > 0; --word.begin) {
    const char c = text[word.begin - 1];
    if (space(c) && depth <= 0) break;
    depth += c == '}' || c == ')' ? 1 : c == '{' || c == '(' ? -1 : 0;
  }
  depth = 0;
  for (std::size_t i = word.begin; i < text.size(); ++i) {
    const char c = text[i];
    if (i > at && space(c) && depth <= 0) break;
    depth += c == '{' || c == '(' ? 1 : c == '}' || c == ')' ? -1 : 0;
    word.end = i + 1;
  }
  word.outer_begin = word.begin;
  word.outer_end = word.end;
  return word;
}

// True if the text before a number may stand before a final answer. Its last word decides.
bool free_before(std::string_view before) {
  before = trim(before);
  if (before.empty()) return true;
  const auto space = before.find_last_of(kSpace);
  const std::string_view word = space == std::string_view::npos ? before : before.substr(space + 1);
  if (word.find('\\') != std::string_view::npos) return false;
  if (std::string_view("+-*/^_<>([{|~").find(word.back()) != std::string_view::npos) return false;
  if (word.back() == '=')
    return word.size() < 2 ||
           std::string_view("<>!~:").find(word[word.size() - 2]) == std::string_view::npos;
  if (static_cast<unsigned char>(word.back()) >= 0x80) return false;  // ≠, ≤, √, ×, a minus
  for (const std::string_view bad :
       {"minus", "negative", "plus", "times", "over", "sqrt", "root", "log", "ln", "sin", "cos",
        "tan", "not", "than", "least", "most"})
    if (word == bad) return false;
  return true;
}

// True if the text behind a number may stand behind a final answer.
bool free_after(std::string_view after) {
  after = trim(after);
  if (after.empty()) return true;
  if (std::string_view("+-*/^_<>=([{|\\%~").find(after[0]) != std::string_view::npos) return false;
  if (static_cast<unsigned char>(after[0]) >= 0x80) return false;
  std::size_t end = 0;
  while (end < after.size() && is_letter(after[end])) ++end;
  const std::string_view word = after.substr(0, end);
  // A number may be followed by words with which a sentence goes on.
  if (word == "is" || word == "and" || word == "or" || word == "but" || word == "not" ||
      word == "if" || word == "a" || word == "to")
    return true;
  return word.size() != 1 && !grade::changes_a_value(word);
}

std::optional<std::string> last_number(std::string_view solution) {
  const std::string text = without_markup(solution);
  const auto at = text.find_last_of("0123456789");
  if (at == std::string::npos) return std::nullopt;
  const std::string_view all = text;
  const auto formula = formula_around(all, at);
  Place place = formula ? *formula : word_around(all, at);
  std::string_view word = all.substr(place.begin, place.end - place.begin);
  // "x=3" answers 3; "x<=3" and "x==3" answer nothing.
  bool after_equals = false;
  if (const auto equals = word.rfind('='); equals != std::string_view::npos && equals > 0) {
    if (std::string_view("<>!~:=").find(word[equals - 1]) != std::string_view::npos)
      return std::nullopt;
    word.remove_prefix(equals + 1);
    after_equals = true;
  } else if (word.starts_with('=')) {
    word.remove_prefix(1);
  }
  while (!word.empty() && std::string_view("\"'`*").find(word.front()) != std::string_view::npos)
    word.remove_prefix(1);
  while (!word.empty() &&
         std::string_view("\"'`*.,;:?").find(word.back()) != std::string_view::npos)
    word.remove_suffix(1);
  std::string answer(word);
  const std::string_view before = trim(all.substr(0, place.outer_begin));
  std::string_view after = all.substr(place.outer_end);
  const bool ended = all.substr(place.begin, place.end - place.begin).find_last_of(".,;:?") ==
                     place.end - place.begin - 1;
  if (!ended && (trim(after).starts_with('%') || trim(after).starts_with("\\%") ||
                 trim(after).starts_with("percent"))) {
    answer += '%';
  } else if (!ended && !free_after(after)) {
    return std::nullopt;
  }
  if (!after_equals && !free_before(before)) return std::nullopt;
  // "1 1/2", "1 234": the digits before belong to it.
  if (!formula && !after_equals && !before.empty() && is_digit(before.back())) {
    const bool fraction = answer.find('/') != std::string::npos || answer.starts_with("\\frac");
    const bool group =
        answer.size() >= 3 && std::all_of(answer.begin(), answer.begin() + 3, is_digit);
    if (group && !fraction) return std::nullopt;
    if (fraction) {
      const Place whole = word_around(
          all, static_cast<std::size_t>(before.data() - all.data()) + before.size() - 1);
      answer = std::string(all.substr(whole.begin, whole.end - whole.begin)) + " " + answer;
    }
  }
  return parse_value(answer) ? std::optional(answer) : std::nullopt;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

// The inside of a box from behind its name on: a group in braces, or a word, as in \boxed 7.
std::optional<std::string_view> boxed(std::string_view text, std::size_t open) {
  open = skip_blanks(text, open);
  if (open >= text.size() || text[open] == '{') return braced(text, open);
  std::string_view word = text.substr(open);
  word = word.substr(0, word.find_first_of(" \t\r\n$"));
  while (!word.empty() && std::string_view(".,;:").find(word.back()) != std::string_view::npos)
    word.remove_suffix(1);
  return word;
}

// How the text between two boxes joins them to one answer: by a comma, a semicolon, "and" or "or".
// White space and the ends of formulas may stand beside it. None where the text has anything else,
// or nothing that joins.
std::optional<std::string_view> join_of_boxes(std::string_view between) {
  constexpr std::string_view kSilent[] = {"\\quad", "\\qquad", "\\text{", "\\textrm{", "\\,", "\\;",
                                          "\\ ",    "\\(",     "\\)",     "\\[",       "\\]", "$",
                                          "}",      " ",       "\n",      "\t",        "\r"};
  struct Join {
    std::string_view text, written;
  };
  constexpr Join kJoins[] = {
      {"and", " \\text{ and } "}, {"or", " \\text{ or } "}, {",", ", "}, {";", ", "}};
  std::optional<std::string_view> join;
  while (!between.empty()) {
    const auto begins = [between](std::string_view text) { return between.starts_with(text); };
    if (const auto it = std::ranges::find_if(kJoins, begins, &Join::text); it != std::end(kJoins)) {
      const bool word = join && *join != ", ";
      if (word && it->written != ", ") return std::nullopt;  // "and or"
      if (!word) join = it->written;                         // ", and" is an "and"
      between.remove_prefix(it->text.size());
    } else if (const auto silent = std::ranges::find_if(kSilent, begins);
               silent != std::end(kSilent)) {
      between.remove_prefix(silent->size());
    } else {
      return std::nullopt;
    }
  }
  return join;
}

// Whether one box says what the other does: 1/2 and 0.5.
bool same_part(std::string_view one, std::string_view other) {
  if (one == other) return true;
  return one.size() <= kPartBytesMax && other.size() <= kPartBytesMax && math_equal(one, other);
}

// The inside of the last box, and those of the boxes to which it is joined: \boxed{1} and \boxed{2}
// are the list 1 and 2. A box that says again what the last one says is none more.
std::optional<std::string> boxed_answer(std::string_view text, Box box) {
  auto inside = boxed(text, box.inside);
  if (!inside) return std::nullopt;
  const std::string_view last = trim(*inside);
  std::string answer(last);
  bool several = false;
  for (int boxes = 1;; ++boxes) {
    const std::string_view before = text.substr(0, box.name);
    const auto previous = last_box(before);
    if (!previous || !(inside = braced(before, skip_blanks(before, previous->inside)))) break;
    const auto end = static_cast<std::size_t>(inside->data() - text.data()) + inside->size() + 1;
    const auto join = join_of_boxes(before.substr(end));
    if (!join) break;
    if (boxes == kBoxesMax) return several ? std::nullopt : std::optional(answer);
    box = *previous;
    const std::string_view part = trim(*inside);
    if (same_part(part, last)) continue;
    several = true;
    answer = std::string(part) + std::string(*join) + answer;
  }
  return answer;
}

// The answer on a line behind ####: the line, or, where that is no answer, the value that it begins
// with: "42 and that is what I found".
std::string_view marked_answer(std::string_view line) {
  line = trim(line);
  if (parse_value(line) || grade::read_answer(line)) return line;
  for (std::size_t at = 0; (at = line.find(' ', at + 1)) != std::string_view::npos;) {
    if (at + 1 >= line.size() || !is_letter(line[at + 1])) continue;
    const std::string_view value = line.substr(0, at);
    return parse_value(value) && free_after(line.substr(at)) ? value : line;
  }
  return line;
}

// The formula that ends a text, but for a full stop and markup around it.
std::optional<std::string_view> last_formula(std::string_view text) {
  const std::string plain = without_markup(text);  // with the same offsets
  std::string_view ended = plain;
  ended = ended.substr(0, ended.find_last_not_of(kSpace) + 1);
  while (!ended.empty() && std::string_view(".,;:* ").find(ended.back()) != std::string_view::npos)
    ended.remove_suffix(1);
  if (ended.size() < 3) return std::nullopt;
  const auto formula = formula_around(ended, ended.size() - (ended.back() == '$' ? 2 : 3));
  if (!formula || formula->outer_end != ended.size()) return std::nullopt;
  const std::string_view before = trim(ended.substr(0, formula->outer_begin));
  if (!free_before(before) || before.ends_with("or") || before.ends_with("and") ||
      before.ends_with(','))
    return std::nullopt;  // $x$ or $y$
  // In the formula a ** is a power, and no markup.
  return trim(text.substr(formula->begin, formula->end - formula->begin));
}

// What stands behind the last "answer is" or "answer:" of a text; empty if it has none.
std::string_view stated_answer(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  std::size_t begin = 0;
  for (const std::string_view words : {"answer is", "answer:"})
    if (const auto at = lower.rfind(words); at != std::string::npos)
      begin = std::max(begin, at + words.size());
  return begin == 0 ? std::string_view() : trim(text.substr(begin));
}

// The answer of a completion where the reference is no number: without a mark the choice that it
// states, if the reference is one, the formula that ends it, or the whole text.
std::optional<std::string> symbolic_answer(std::string_view wanted, std::string_view completion) {
  if (marked(completion)) return final_answer(completion);
  if (const auto choice = grade::choice_of(wanted); choice && choice->alone) {
    const std::string plain = without_markup(completion);
    if (const auto stated = stated_answer(plain); grade::choice_of(stated))
      return std::string(stated);
  }
  const auto formula = last_formula(completion);
  return std::string(formula ? *formula : completion);
}

bool has_name(std::string_view text) { return text.find('=') != std::string_view::npos; }

bool same_text(std::string_view wanted, std::string_view text) {
  if (text.size() > kValueBytesMax || wanted.size() > kValueBytesMax)
    return trim(text) == trim(wanted) && !trim(wanted).empty();
  const std::string form = same_text_form(wanted);
  return !form.empty() && form == same_text_form(text);
}

}  // namespace

std::optional<std::string> final_answer(std::string_view solution) {
  if (const auto box = last_box(solution)) return boxed_answer(solution, *box);
  if (const auto at = solution.rfind(kMark); at != std::string_view::npos) {
    const std::string_view line = solution.substr(at + kMark.size());
    return std::string(marked_answer(line.substr(0, line.find('\n'))));
  }
  if (parse_value(solution)) return std::string(trim(solution));
  return last_number(solution);
}

namespace {

std::string wanted_answer(std::string_view reference) {
  return marked(reference) ? final_answer(reference).value_or(std::string(reference))
                           : std::string(reference);
}

// "-3/10", reduced where the digits are few enough, else without the zeros that numerator and
// denominator share at their ends.
std::string number_form(Rational number) {
  const auto above = grade::read_rational(number.numerator);
  const auto below = grade::read_rational(number.denominator);
  if (const auto value = above && below ? grade::divide(*above, *below) : std::nullopt)
    return (number.negative ? "-" : "") + grade::text_of(*value);
  while (number.numerator.ends_with('0') && number.denominator.ends_with('0')) {
    number.numerator.pop_back();
    number.denominator.pop_back();
  }
  return (number.negative ? "-" : "") + number.numerator + "/" + number.denominator;
}

// The vote of a wrong completion (MV-2).
std::optional<std::string> wrong_vote(std::string_view reference, std::string_view completion) {
  const std::optional<std::string> found = final_answer(completion);
  if (!found) {
    // An answer without a mark that is no number counts only where it is read; else a whole
    // solution would be an answer.
    const std::string wanted = wanted_answer(reference);
    const auto text = parse_value(wanted) ? std::nullopt : symbolic_answer(wanted, completion);
    return text ? grade::answer_form(*text) : std::nullopt;
  }
  if (found->size() > kValueBytesMax) return found;
  const auto value = parse_value(*found);
  const bool is_number = value && value->items.size() == 1 && !value->items[0].infinite;
  if (is_number) return number_form(value->items[0].number);
  auto form = grade::answer_form(*found);
  return form ? form : std::optional("text " + same_text_form(*found));
}

}  // namespace

bool math_equal(std::string_view reference, std::string_view completion, PercentReading percent) {
  const std::string wanted = wanted_answer(reference);
  const auto value = parse_value(wanted);
  if (value) {
    const std::optional<std::string> given = final_answer(completion);
    if (const auto other = given ? parse_value(*given) : std::nullopt) {
      const bool same = same_value(*value, *other, percent);
      const bool names = has_name(wanted) || has_name(*given);
      return names ? grade::same_answer(wanted, *given, percent).value_or(same) : same;
    }
  }
  const std::optional<std::string> text = symbolic_answer(wanted, completion);
  if (!text) return false;
  if (!value && same_text(wanted, *text) && !parse_value(*text)) return true;
  return grade::same_answer(wanted, *text, percent).value_or(false);
}

MathVerdict judge_math(std::string_view reference, std::string_view completion,
                       PercentReading percent) {
  if (math_equal(reference, completion, percent)) return {.right = true, .vote = "the reference"};
  return {.right = false, .vote = wrong_vote(reference, completion)};
}

}  // namespace tandem::reward
