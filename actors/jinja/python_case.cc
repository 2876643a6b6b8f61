// Case mapping and classes of characters (python_text.h).
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

struct SpecialCase {
  char32_t letter;
  std::u32string_view upper, title;
};
// SpecialCasing.txt of Unicode 15, the rows without conditions outside of Greek Extended.
constexpr auto kSpecialCases = std::to_array<SpecialCase>({
    {U'\u00df', U"\u0053\u0053", U"\u0053\u0073"},
    {U'\u0149', U"\u02bc\u004e", U"\u02bc\u004e"},
    {U'\u01f0', U"\u004a\u030c", U"\u004a\u030c"},
    {U'\u0390', U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
    {U'\u03b0', U"\u03a5\u0308\u0301", U"\u03a5\u0308\u0301"},
    {U'\u0587', U"\u0535\u0552", U"\u0535\u0582"},
    {U'\u1e96', U"\u0048\u0331", U"\u0048\u0331"},
    {U'\u1e97', U"\u0054\u0308", U"\u0054\u0308"},
    {U'\u1e98', U"\u0057\u030a", U"\u0057\u030a"},
    {U'\u1e99', U"\u0059\u030a", U"\u0059\u030a"},
    {U'\u1e9a', U"\u0041\u02be", U"\u0041\u02be"},
    {U'\ufb00', U"\u0046\u0046", U"\u0046\u0066"},
    {U'\ufb01', U"\u0046\u0049", U"\u0046\u0069"},
    {U'\ufb02', U"\u0046\u004c", U"\u0046\u006c"},
    {U'\ufb03', U"\u0046\u0046\u0049", U"\u0046\u0066\u0069"},
    {U'\ufb04', U"\u0046\u0046\u004c", U"\u0046\u0066\u006c"},
    {U'\ufb05', U"\u0053\u0054", U"\u0053\u0074"},
    {U'\ufb06', U"\u0053\u0054", U"\u0053\u0074"},
    {U'\ufb13', U"\u0544\u0546", U"\u0544\u0576"},
    {U'\ufb14', U"\u0544\u0535", U"\u0544\u0565"},
    {U'\ufb15', U"\u0544\u053b", U"\u0544\u056b"},
    {U'\ufb16', U"\u054e\u0546", U"\u054e\u0576"},
    {U'\ufb17', U"\u0544\u053d", U"\u0544\u056d"},
});
constexpr char32_t kDottedI = 0x130, kCombiningDot = 0x307, kSigma = 0x3a3, kFinalSigma = 0x3c2;

utf8proc_int32_t signed_code(char32_t code) { return static_cast<utf8proc_int32_t>(code); }

utf8proc_category_t category(char32_t code) { return utf8proc_category(signed_code(code)); }

enum class Case { kUpper, kLower, kTitle };

void append_case(std::string& out, char32_t code, Case form) {
  if (code < 0x80) {
    const bool letter =
        form == Case::kLower ? code >= 'A' && code <= 'Z' : code >= 'a' && code <= 'z';
    out += static_cast<char>(letter ? code ^ 0x20 : code);
    return;
  }
  if (form == Case::kLower) {
    append_code_point(
        out, code == kDottedI ? U'i' : static_cast<char32_t>(utf8proc_tolower(signed_code(code))));
    if (code == kDottedI) append_code_point(out, kCombiningDot);
    return;
  }
  const auto special = std::ranges::find(kSpecialCases, code, &SpecialCase::letter);
  if (special != kSpecialCases.end()) {
    for (const char32_t one : form == Case::kUpper ? special->upper : special->title)
      append_code_point(out, one);
    return;
  }
  append_code_point(
      out, static_cast<char32_t>(form == Case::kUpper ? utf8proc_toupper(signed_code(code))
                                                      : utf8proc_totitle(signed_code(code))));
}

bool is_cased(char32_t code) {
  const utf8proc_category_t found = category(code);
  return found == UTF8PROC_CATEGORY_LU || found == UTF8PROC_CATEGORY_LL ||
         found == UTF8PROC_CATEGORY_LT;
}

// Unicode's Case_Ignorable, by categories and the punctuation that stands within words.
bool is_case_ignorable(char32_t code) {
  const utf8proc_category_t found = category(code);
  return found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_ME ||
         found == UTF8PROC_CATEGORY_CF || found == UTF8PROC_CATEGORY_LM ||
         found == UTF8PROC_CATEGORY_SK || code == '\'' || code == '.' || code == ':' ||
         code == 0xb7 || code == 0x2018 || code == 0x2019 || code == 0x2024 || code == 0x2027;
}

// Whether the sigma that ends at `after` ends a word: a letter is before it, and none behind it.
bool is_final_sigma(std::string_view text, std::size_t before, std::size_t after) {
  std::string_view earlier = text.substr(0, before);
  char32_t letter = ' ';
  while (!earlier.empty() && is_case_ignorable(letter = pop_last(earlier))) {
  }
  if (!is_cased(letter)) return false;
  while (after < text.size()) {
    const char32_t code = next_code_point(text, after);
    if (!is_case_ignorable(code)) return !is_cased(code);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end;) {
    const std::size_t here = at;
    const char32_t code = next_code_point(text, at);
    if (code == kSigma && is_final_sigma(text, here, at))
      append_code_point(out, kFinalSigma);
    else
      append_case(out, code, Case::kLower);
  }
}

std::string mapped(std::string_view text, Case form) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append_case(out, next_code_point(text, at), form);
  return out;
}

bool in_class(char32_t code, Class of) {
  const utf8proc_category_t found = category(code);
  const bool letter = found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO;
  const bool superscript = code == 0xb2 || code == 0xb3 || code == 0xb9 || code == 0x2070 ||
                           (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089);
  switch (of) {
    case Class::kAlpha:
      return letter;
    case Class::kDecimal:
      return found == UTF8PROC_CATEGORY_ND;
    case Class::kDigit:
      return found == UTF8PROC_CATEGORY_ND || superscript;
    case Class::kAlnum:
      return letter || found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL ||
             found == UTF8PROC_CATEGORY_NO;
    case Class::kSpace:
      return is_space(code);
    case Class::kAscii:
      return code < 0x80;
    case Class::kLower:
    case Class::kUpper:
      return is_cased(code);
  }
  return false;
}

// str.islower() and isupper(): some letter has a case, and none has the other one.
bool all_of_case(std::string_view text, bool upper) {
  bool some = false;
  for (std::size_t at = 0; at < text.size();) {
    const utf8proc_category_t found = category(next_code_point(text, at));
    if (found == UTF8PROC_CATEGORY_LT ||
        found == (upper ? UTF8PROC_CATEGORY_LL : UTF8PROC_CATEGORY_LU))
      return false;
    some = some || found == (upper ? UTF8PROC_CATEGORY_LU : UTF8PROC_CATEGORY_LL);
  }
  return some;
}

bool printable(char32_t code) {
  if (code == ' ') return true;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

void append_hex(std::string& out, char32_t code) {
  const int digits = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
  out += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (int i = digits - 1; i >= 0; --i) out += "0123456789abcdef"[(code >> (4 * i)) & 15];
}

}  // namespace

std::string upper(std::string_view text) { return mapped(text, Case::kUpper); }

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_lower(out, text, 0, text.size());
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  if (text.empty()) return out;
  std::size_t at = 0;
  append_case(out, next_code_point(text, at), Case::kTitle);
  append_lower(out, text, at, text.size());
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t code = next_code_point(text, at);
    if (in_word)
      append_lower(out, text, here, at);
    else
      append_case(out, code, Case::kTitle);
    in_word = is_cased(code);
  }
  return out;
}

std::string filter_title(std::string_view text) {
  std::string out;
  bool begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t code = next_code_point(text, at);
    const bool separator =
        is_space(code) || (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) !=
                                              std::string_view::npos);
    if (separator)
      append_code_point(out, code);
    else if (begins)
      append_case(out, code, Case::kUpper);
    else
      append_lower(out, text, here, at);
    begins = separator;
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t code = next_code_point(text, at);
    if (category(code) == UTF8PROC_CATEGORY_LU)
      append_lower(out, text, here, at);
    else
      append_case(out, code, category(code) == UTF8PROC_CATEGORY_LL ? Case::kUpper : Case::kLower);
  }
  return out;
}

bool all_of(std::string_view text, Class of) {
  if (of == Class::kLower || of == Class::kUpper) return all_of_case(text, of == Class::kUpper);
  for (std::size_t at = 0; at < text.size();)
    if (!in_class(next_code_point(text, at), of)) return false;
  return !text.empty() || of == Class::kAscii;
}

std::string python_repr(std::string_view text) {
  const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    if (code == static_cast<char32_t>(quote) || code == '\\')
      out.append(1, '\\').append(1, static_cast<char>(code));
    else if (code == '\n')
      out += "\\n";
    else if (code == '\r')
      out += "\\r";
    else if (code == '\t')
      out += "\\t";
    else if (printable(code))
      append_code_point(out, code);
    else
      append_hex(out, code);
  }
  return out.append(1, quote);
}

}  // namespace tandem::jinja
