// One pass over the expression, which copies what is equal and rewrites what differs:
//
//   \s \d        Oniguruma: White_Space, Decimal_Number. PCRE2's \s has U+180E besides.
//   \p{Han}      Oniguruma: the script. PCRE2: the script extensions, unless sc: is written.
//   .  $         Oniguruma: no \n; before every \n and at the end. PCRE2: before a last \n only.
//   (?i:…)       Oniguruma also matches one character for several letters, such as ß for ss;
//                groups with such a pair of letters, with \p or with other than ASCII are refused.
//   {n,m}+ {n}? {,n}  have other meanings in Ruby's syntax than in Perl's, and are refused.
#include "actors/model/regex_dialect.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

constexpr int kDepthMax = 32;  // levels of groups in groups
constexpr std::size_t kRegexBytesMax = 64 << 10;

// Values of General_Category, which both engines know by these names.
constexpr std::array<std::string_view, 36> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd",
    "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm",
    "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co", "Cn"};
constexpr std::array<std::string_view, 14> kScripts = {
    "Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Georgian", "Greek",
    "Han",    "Hangul",   "Hebrew",  "Hiragana", "Katakana",   "Latin",    "Thai"};
// Pairs of letters for which Unicode's full case folding has one character (ß, ﬀ, ﬁ, ﬂ, ﬆ).
constexpr std::array<std::string_view, 5> kFoldedPairs = {"ss", "ff", "fi", "fl", "st"};

constexpr std::string_view kPunctuation = "\\.+*?()|[]{}^$-/&~#'\"!%,:;<=>@_` ";

class Translator {
 public:
  Translator(std::string_view regex, const std::string& where) : regex_(regex), where_(where) {}

  Result<std::string> run() {
    if (regex_.empty() || regex_.size() > kRegexBytesMax) return refuse("of its length");
    if (first_malformed_utf8(regex_)) return refuse("that is not UTF-8");
    if (Result<void> done = alternatives(0, /*ignores_case=*/false); !done) return done.error();
    if (at_ < regex_.size()) return refuse("with an unmatched )");
    return std::move(out_);
  }

 private:
  Error refuse(const std::string& what) const {
    return Error{.message = "tokenizer: pre_tokenizer regex '" +
                            std::string(regex_.substr(0, 400)) + "' is not supported: it is one " +
                            what,
                 .where = where_,
                 .help = "only expressions are run that PCRE2 and Oniguruma read alike"};
  }
  bool next_is(std::string_view text) const { return regex_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }

  Result<void> alternatives(int depth, bool ignores_case);
  Result<void> atom(int depth, bool ignores_case, bool& repeatable);
  Result<void> group(int depth, bool ignores_case, bool& repeatable);
  Result<void> quantifier(bool repeatable);
  Result<bool> counted();
  Result<void> escape(bool ignores_case);
  Result<void> property(bool ignores_case);
  Result<void> character_class(bool ignores_case);
  Result<std::uint32_t> literal(bool ignores_case);

  std::string_view regex_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::string out_;
};

Result<void> Translator::alternatives(int depth, bool ignores_case) {
  if (depth > kDepthMax) return refuse("with too many groups in groups");
  char previous = 0;  // the letter before, within a group that ignores case
  while (at_ < regex_.size() && regex_[at_] != ')') {
    if (take("|")) {
      out_ += '|';
      previous = 0;
      continue;
    }
    if (ignores_case) {
      const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(regex_[at_])));
      const std::string pair{previous, letter};
      if (std::ranges::count(kFoldedPairs, pair) > 0)
        return refuse("that ignores the case of '" + pair + "'");
      previous = letter;
    }
    bool repeatable = true;
    if (Result<void> done = atom(depth, ignores_case, repeatable); !done) return done;
    if (Result<void> done = quantifier(repeatable); !done) return done;
  }
  return {};
}

Result<void> Translator::atom(int depth, bool ignores_case, bool& repeatable) {
  switch (regex_[at_]) {
    case '(':
      return group(depth, ignores_case, repeatable);
    case '[':
      return character_class(ignores_case);
    case '\\':
      return escape(ignores_case);
    case '.':
      ++at_;
      out_ += "[^\\n]";
      return {};
    case '$':
      ++at_;
      out_ += "(?=\\n|\\z)";
      repeatable = false;
      return {};
    case '^':
    case '*':
    case '+':
    case '?':
    case '{':
    case '}':
    case ']':
      return refuse(std::string("with '") + regex_[at_] + "' in this place");
    default: {
      const Result<std::uint32_t> c = literal(ignores_case);
      if (!c) return c.error();
      std::string text;
      append_utf8(text, *c);
      out_ += pcre2_literal(text);
      return {};
    }
  }
}

Result<void> Translator::group(int depth, bool ignores_case, bool& repeatable) {
  struct Kind {
    std::string_view opens, becomes;
    bool looks, ignores_case;
  };
  constexpr std::array kKinds = {
      Kind{"(?:", "(?:", false, false},  Kind{"(?>", "(?>", false, false},
      Kind{"(?i:", "(?i:", false, true}, Kind{"(?=", "(?=", true, false},
      Kind{"(?!", "(?!", true, false},   Kind{"(?<=", "(?<=", true, false},
      Kind{"(?<!", "(?<!", true, false}};
  const auto kind =
      std::ranges::find_if(kKinds, [&](const Kind& known) { return next_is(known.opens); });
  bool inner_ignores_case = ignores_case;
  if (kind != kKinds.end()) {
    at_ += kind->opens.size();
    out_ += kind->becomes;
    repeatable = !kind->looks;
    inner_ignores_case = ignores_case || kind->ignores_case;
  } else if (next_is("(?") || next_is("(*")) {
    return refuse("with the group " + std::string(regex_.substr(at_, 4)));
  } else {  // a capture, which nothing refers to
    ++at_;
    out_ += "(?:";
  }
  if (Result<void> done = alternatives(depth + 1, inner_ignores_case); !done) return done;
  if (!take(")")) return refuse("with an unmatched (");
  out_ += ')';
  return {};
}

// Reads {n}, {n,} or {n,m}, and returns whether one was there.
Result<bool> Translator::counted() {
  if (!next_is("{")) return false;
  const std::size_t end = regex_.find('}', at_);
  const std::string_view inside = end == regex_.npos ? "" : regex_.substr(at_ + 1, end - at_ - 1);
  const std::size_t comma = inside.find(',');
  const std::string_view low = inside.substr(0, comma),
                         high = comma == inside.npos ? "" : inside.substr(comma + 1);
  const auto digits = [](std::string_view text) {
    return text.size() <= 4 &&
           std::ranges::all_of(text, [](char c) { return '0' <= c && c <= '9'; });
  };
  if (low.empty() || !digits(low) || !digits(high)) return refuse("with '{' in this place");
  out_ += regex_.substr(at_, end + 1 - at_);
  at_ = end + 1;
  if (next_is("+") || (next_is("?") && comma == inside.npos))
    return refuse("with " + std::string(regex_.substr(end - inside.size() - 1, inside.size() + 3)));
  return true;
}

Result<void> Translator::quantifier(bool repeatable) {
  const std::size_t begin = at_;
  const Result<bool> count = counted();
  if (!count) return count.error();
  if (*count) {
    if (take("?")) out_ += '?';
  } else if (next_is("?") || next_is("*") || next_is("+")) {
    out_ += regex_[at_++];
    if (next_is("?") || next_is("+")) out_ += regex_[at_++];
  } else {
    return {};
  }
  const bool again = next_is("?") || next_is("*") || next_is("+") || next_is("{");
  if (again || !repeatable)
    return refuse("with the quantifier " + std::string(regex_.substr(begin, at_ + 1 - begin)));
  return {};
}

// A backslash and what it stands for, inside a class or outside.
Result<void> Translator::escape(bool ignores_case) {
  const std::string pair(regex_.substr(at_, 2));
  const char c = pair.size() == 2 ? pair[1] : '\0';
  if (c == 'p' || c == 'P') return property(ignores_case);
  if (c == 's' || c == 'S')
    out_ += c == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
  else if (c == 'd' || c == 'D')
    out_ += c == 'd' ? "\\p{Nd}" : "\\P{Nd}";
  else if (c == 'r' || c == 'n' || c == 't' || c == 'f' ||
           (c != 0 && kPunctuation.find(c) != kPunctuation.npos))
    out_ += pair;
  else
    return refuse("with " + pair);
  at_ += 2;
  return {};
}

Result<void> Translator::property(bool ignores_case) {
  const std::size_t end = regex_.find('}', at_);
  const std::string_view whole = regex_.substr(at_, end == regex_.npos ? 4 : end + 1 - at_);
  const bool braced = whole.size() > 4 && whole[2] == '{' && whole.back() == '}';
  const std::string_view name = braced ? whole.substr(3, whole.size() - 4) : "";
  const bool script = std::ranges::count(kScripts, name) > 0;
  if (ignores_case || (!script && std::ranges::count(kCategories, name) == 0))
    return refuse("with " + std::string(whole) + (ignores_case ? ", its case ignored" : ""));
  out_ += std::string("\\") + whole[1] + "{" + (script ? "sc:" : "") + std::string(name) + "}";
  at_ += whole.size();
  return {};
}

// One character that stands for itself, and its code point.
Result<std::uint32_t> Translator::literal(bool ignores_case) {
  const std::uint32_t c = next_code_point(regex_, at_);
  if (c == 0 || (ignores_case && c >= 0x80)) return refuse("that ignores the case of its letters");
  return c;
}

Result<void> Translator::character_class(bool ignores_case) {
  ++at_;
  out_ += '[';
  if (take("^")) out_ += '^';
  if (next_is("]")) return refuse("with an empty class");
  bool range_may_begin = false;  // the item before is one character
  for (bool first = true; !next_is("]"); first = false) {
    if (at_ >= regex_.size()) return refuse("with an unmatched [");
    if (next_is("[") || next_is("&&")) return refuse("with a class in a class");
    const bool range = next_is("-") && !next_is("-]") && !first;
    if (range) {
      if (!range_may_begin) return refuse("with an unclear '-' in a class");
      ++at_;
      out_ += '-';
      if (next_is("[") || next_is("-")) return refuse("with an unclear '-' in a class");
    }
    const bool named = next_is("\\") && at_ + 1 < regex_.size() &&
                       std::string_view("pPsSdD").find(regex_[at_ + 1]) != std::string_view::npos;
    if (range && named) return refuse("with an unclear '-' in a class");
    if (next_is("\\")) {
      if (Result<void> done = escape(ignores_case); !done) return done;
    } else {
      const Result<std::uint32_t> c = literal(ignores_case);
      if (!c) return c.error();
      std::string text;
      append_utf8(text, *c);
      out_ += pcre2_literal(text);
    }
    range_may_begin = !range && !named;
  }
  ++at_;
  out_ += ']';
  return {};
}

}  // namespace

Result<std::string> pcre2_pattern(std::string_view regex, const std::string& where) {
  return Translator(regex, where).run();
}

std::string pcre2_literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c > 0 && c < 0x7F && std::ispunct(static_cast<unsigned char>(c)) != 0) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace tandem::model
