#include "actors/reward/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <utility>

namespace tandem::reward {
namespace {

constexpr std::uint32_t kMatchSteps = 10'000'000;  // steps of one search; a longer one is an error

std::string describe(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

Pattern::Pattern(Code code, Limits limits) : code_(std::move(code)), limits_(std::move(limits)) {
  pcre2_pattern_info(code_.get(), PCRE2_INFO_CAPTURECOUNT, &groups_);
}

Result<Pattern> Pattern::compile(const std::string& text) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                          PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr),
            &pcre2_code_free);
  if (!code)
    return Error{
        ErrorCode::kInvalid,
        "the pattern does not compile: " + describe(error) + " at byte " + std::to_string(offset),
        "reward.pattern"};
  Limits limits(pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  pcre2_set_match_limit(limits.get(), kMatchSteps);
  return Pattern(std::move(code), std::move(limits));
}

std::optional<std::string> Pattern::Match::fault() const {
  if (found() || code == PCRE2_ERROR_NOMATCH) return std::nullopt;
  return "the pattern could not be matched: " + describe(code);
}

Pattern::Found Pattern::search(std::string_view text, std::size_t from) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code_.get(), nullptr), &pcre2_match_data_free);
  Found found{.match = {pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                    text.size(), from, 0, data.get(), limits_.get())}};
  if (!found.match.found()) return found;
  const PCRE2_SIZE* const at = pcre2_get_ovector_pointer(data.get());
  if (found.match.code > 1 && at[2] != PCRE2_UNSET)
    found.match.group = trimmed(text.substr(at[2], at[3] - at[2]));
  found.next = at[1] > from ? at[1] : from + 1;  // an empty match would be found again and again
  return found;
}

Pattern::Match Pattern::last(std::string_view text) const {
  Found best = search(text, 0);
  for (Found next = best; next.match.found() && next.next <= text.size();) {
    next = search(text, next.next);
    if (next.match.found() || next.match.fault()) best = next;
  }
  return best.match;
}

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

}  // namespace tandem::reward
