#include "actors/grade/choice.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace tandem::grade {
namespace {

bool is_choice_letter(char c) { return c >= 'A' && c <= 'J'; }

// Whether words behind a choice, without spaces, name another one: "or(C)", "iswrong,(C)".
bool names_another(std::string_view rest) {
  for (std::size_t at = 0; at + 2 < rest.size(); ++at)
    if (rest[at] == '(' && is_choice_letter(rest[at + 1]) && rest[at + 2] == ')') return true;
  for (const std::string_view word : {"or", "and", ",", "/", "&", ";"}) {
    if (!rest.starts_with(word)) continue;
    rest.remove_prefix(word.size());
    return !rest.empty() && is_choice_letter(rest[0]) &&
           (rest.size() == 1 || std::isalnum(static_cast<unsigned char>(rest[1])) == 0);
  }
  return false;
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
  if (at >= plain.size() || !is_choice_letter(plain[at])) return std::nullopt;
  std::string_view rest = std::string_view(plain).substr(at + 1);
  const bool closed = rest.starts_with(')');
  if (closed) rest.remove_prefix(1);
  const bool alone = rest.empty() || rest == "." || (!closed && rest == ":");
  if ((bracket && !closed) || (!alone && (!closed || names_another(rest)))) return std::nullopt;
  return Choice{.letter = plain[at], .alone = alone};
}

}  // namespace tandem::grade
