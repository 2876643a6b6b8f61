#include "actors/model/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

// Unicode's White_Space.
bool is_space(std::uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// \w of Unicode Technical Standard 18, annex C: alphabetic, mark, decimal digit, connector, joiner.
bool is_word(std::uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_SO:  // the symbols that are alphabetic: letters in circles and squares
      return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
             (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
    default:
      return c == 0x200C || c == 0x200D;
  }
}

// The offset of the last character of a text that is not empty.
std::size_t start_of_last(std::string_view text) {
  std::size_t at = text.size() - 1;
  while ((text[at] & 0xC0) == 0x80) --at;
  return at;
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = start_of_last(text);
  return is_word(next_code_point(text, at));
}

bool starts_with_word(std::string_view text) {
  std::size_t at = 0;
  return !text.empty() && is_word(next_code_point(text, at));
}

std::size_t without_space_at_end(std::string_view text) {
  while (!text.empty()) {
    const std::size_t start = start_of_last(text);
    std::size_t at = start;
    if (!is_space(next_code_point(text, at))) break;
    text = text.substr(0, start);
  }
  return text.size();
}

std::size_t space_at_start(std::string_view text) {
  std::size_t space = 0;
  for (std::size_t at = 0; at < text.size(); space = at)
    if (!is_space(next_code_point(text, at))) break;
  return space;
}

}  // namespace

AddedTokens::ByLead AddedTokens::by_lead(const std::vector<AddedToken>& tokens, bool normalized) {
  ByLead made;
  const auto lead = [&](std::uint32_t i) {
    return static_cast<unsigned char>(tokens[i].pattern[0]);
  };
  // A normalizer may leave nothing of a token, which then stands nowhere.
  for (std::uint32_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].normalized == normalized && !tokens[i].pattern.empty()) made.order.push_back(i);
  // Of equal lengths the file's order is kept.
  std::ranges::stable_sort(made.order, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(lead(a), tokens[b].pattern.size()) <
           std::pair(lead(b), tokens[a].pattern.size());
  });
  for (const std::uint32_t i : made.order) ++made.begin[lead(i) + 1];
  std::partial_sum(made.begin.begin(), made.begin.end(), made.begin.begin());
  return made;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)),
      raw_(by_lead(tokens_, false)),
      normalized_(by_lead(tokens_, true)) {}

std::vector<Stretch> AddedTokens::cut(std::string_view text, bool normalized) const {
  const ByLead& by_lead = normalized ? normalized_ : raw_;
  std::vector<Stretch> out;
  std::size_t plain = 0;  // the text from here on is in no stretch yet
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const auto last = by_lead.order.begin() + by_lead.begin[lead + 1u];
    const auto found = std::find_if(
        by_lead.order.begin() + by_lead.begin[lead], last,
        [&](std::uint32_t i) { return text.substr(at).starts_with(tokens_[i].pattern); });
    if (found == last) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[*found];
    std::size_t begin = at, end = at + token.pattern.size();
    // The scan goes on behind the token even if single_word rules it out, as the reference does.
    at = end;
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    // White space that the token before has already taken cannot be taken again.
    if (token.left_strip) begin = std::max(without_space_at_end(text.substr(0, begin)), plain);
    if (token.right_strip) end += space_at_start(text.substr(end));
    if (begin > plain) out.push_back({plain, begin - plain, nullptr});
    out.push_back({begin, end - begin, &token});
    plain = end;
  }
  if (text.size() > plain) out.push_back({plain, text.size() - plain, nullptr});
  return out;
}

}  // namespace tandem::model
