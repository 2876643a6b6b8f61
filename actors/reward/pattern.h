// A regular expression (PCRE2) with a limit on the steps of a search: one that backtracks without
// end is an error, and does not stop the actor. A search for the last match takes a time that may
// grow with the square of its text, so give last() no more than some kilobytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;

namespace tandem::reward {

// Immutable; its const members may be called from several threads at once.
class Pattern {
 public:
  // kInvalid, with what is wrong and where, for a text that does not compile.
  static Result<Pattern> compile(const std::string& text);

  bool has_group() const { return groups_ > 0; }
  struct Match {
    int code = 0;  // negative: there is none
    // The first group, trimmed; an optional one may have taken no part in the match.
    std::optional<std::string> group = {};
    bool found() const { return code >= 0; }
    // Why the search ended without an answer; nullopt: it found a match, or that there is none.
    std::optional<std::string> fault() const;
  };
  Match first(std::string_view text) const { return search(text, 0).match; }
  Match last(std::string_view text) const;

 private:
  struct Found {
    Match match;
    std::size_t next = 0;  // where a further match may begin
  };
  Found search(std::string_view text, std::size_t from) const;
  using Code = std::unique_ptr<pcre2_real_code_8, void (*)(pcre2_real_code_8*)>;
  using Limits = std::unique_ptr<pcre2_real_match_context_8, void (*)(pcre2_real_match_context_8*)>;
  Pattern(Code code, Limits limits);

  Code code_;
  Limits limits_;
  std::uint32_t groups_ = 0;
};

// Without white space at both ends.
std::string trimmed(std::string_view text);

}  // namespace tandem::reward
