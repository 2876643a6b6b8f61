// A choice with words behind it counts only where these name no other choice: a completion that
// lists all choices, or takes its first one back, would be paid for each of them. Words that could
// name another one do.
#include "actors/grade/choice.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

namespace tandem::grade {
namespace {

constexpr std::string_view kBetween = " {}";

bool is_choice_letter(char c) { return c >= 'A' && c <= 'J'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string_view without(std::string_view ahead, std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(ahead), text.size()));
  return text;
}

// The text with a space for each command, so that words stay apart; none where the letter has a
// command before it that is no font.
std::optional<std::string> without_commands(std::string_view text) {
  static constexpr std::string_view kFonts[] = {"text",  "textbf", "mathrm", "mathbf", "textrm",
                                                "boxed", "left",   "right",  ""};
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c != '\\') {
      plain += c == '$' || c == '~' || std::isspace(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && is_letter(text[at])) ++at;
    const std::string_view name = text.substr(begin, at - begin);
    if (name.empty() && at < text.size()) ++at;
    if (std::ranges::find(kFonts, name) == std::end(kFonts) && plain.find(')') == plain.npos)
      return std::nullopt;
    plain += name == "cdot" || name == "times" ? '*' : ' ';
  }
  return plain;
}

// Whether the words begin as those of "(B) A triangle" and "(B). I checked it" do, where the
// capital is an English word.
bool begins_with_english(std::string_view words) {
  if (words.size() < 3 || (words[0] != 'A' && words[0] != 'I') || words[1] != ' ') return false;
  const std::string_view next = without(" ", words.substr(1));
  const std::string_view word = next.substr(
      0, static_cast<std::size_t>(std::ranges::find_if_not(next, is_letter) - next.begin()));
  static constexpr std::string_view kOfChoices[] = {
      "is",  "was",     "are",   "or", "and", "but", "not", "too",  "also",
      "has", "instead", "would", "if", "as",  "may", "can", "fits", "seems"};
  return !word.empty() && is_lower(word[0]) &&
         std::ranges::find(kOfChoices, word) == std::end(kOfChoices);
}

// Whether words behind the choice of `letter` may name another one: "or (C)", "is wrong, so C",
// "1 C) 2".
bool names_another(std::string_view rest, char letter) {
  const std::string_view words = without(" {}.:", rest);
  std::size_t at = rest.size() - words.size();
  if (begins_with_english(words)) ++at;
  for (; at < rest.size(); ++at) {
    const char c = rest[at], before = at > 0 ? rest[at - 1] : ' ';
    const char behind = at + 1 < rest.size() ? rest[at + 1] : ' ';
    const bool small = is_lower(c) && before == '(' && (at < 2 || !in_word(rest[at - 2]));
    const char named = small ? static_cast<char>(std::toupper(c)) : c;
    if (!is_choice_letter(named) || named == letter || in_word(behind)) continue;
    const bool label = behind == ')' && (small || !(before >= 'A' && before <= 'Z'));
    if (label || (!small && !in_word(before))) return true;
  }
  return false;
}

// Whether the bracket of a letter is part of a formula, such as (C)^2, (A)x and (B)+1.
bool goes_on_as_formula(std::string_view rest) {
  const std::string_view direct = without("{}", rest), next = without(kBetween, rest);
  return is_letter(direct[0]) ||
         std::string_view("^_'!*/+=<>").find(direct[0]) != std::string_view::npos ||
         next[0] == '^' || next[0] == '_';
}

}  // namespace

std::optional<Choice> choice_of(std::string_view text) {
  const std::optional<std::string> plain = without_commands(text);
  if (!plain) return std::nullopt;
  std::string_view rest = without(kBetween, *plain);
  const bool bracket = rest.starts_with('(');
  if (bracket) rest = without(kBetween, rest.substr(1));
  if (rest.empty() || !is_choice_letter(rest[0])) return std::nullopt;
  const char letter = rest[0];
  rest.remove_prefix(1);
  const bool closed = without(kBetween, rest).starts_with(')');
  if (closed) rest = without(kBetween, rest).substr(1);
  std::string visible;
  std::ranges::copy_if(rest, std::back_inserter(visible),
                       [](char c) { return kBetween.find(c) == kBetween.npos; });
  const bool alone = visible.empty() || visible == "." || (!closed && visible == ":");
  if (bracket && !closed) return std::nullopt;
  if (!alone && (!closed || goes_on_as_formula(rest) || names_another(rest, letter)))
    return std::nullopt;
  return Choice{.letter = letter, .alone = alone};
}

}  // namespace tandem::grade
