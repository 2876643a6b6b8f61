#include "actors/launch/yaml_text.h"

#include <algorithm>
#include <sstream>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace tandem::launch {
namespace {

// `value` where the column `at` of a line begins: its further lines begin there too.
std::string placed(const std::string& value, std::size_t at) {
  std::string made;
  for (std::size_t i = 0; i < value.size(); ++i) {
    made += value[i];
    const bool before_text = i + 1 < value.size() && value[i + 1] != '\n';
    if (value[i] == '\n' && before_text) made += std::string(at, ' ');
  }
  return made;
}

// Whether YAML of every version and in every place takes the code point as it is, within quotes.
bool stands_for_itself(const CodePoint& point) {
  const char32_t c = point.value;
  return c >= 0x20 && (c < 0x7f || c > 0x9f) && c != '"' && c != '\\' && c != 0x2028 &&
         c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

}  // namespace

std::string filled(std::string_view text, const GapValues& values) {
  std::string made;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::size_t from = 0;
    for (std::size_t at; (at = line.find('@', from)) != line.npos;) {
      const std::size_t end = line.find('@', at + 1);
      CHECK(end != line.npos);
      const auto value = values.find(std::string_view(line).substr(at + 1, end - at - 1));
      CHECK(value != values.end());
      const std::string put = placed(value->second, at);
      line.replace(at, end + 1 - at, put);
      from = at + put.size();
    }
    if (line.find_first_not_of(' ') == line.npos) continue;
    made += (made.empty() ? "" : "\n") + line;
  }
  return made;
}

std::string quoted(const std::string& given) {
  const std::string text = valid_utf8(given);
  std::string made = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const CodePoint point = first_code_point(rest);
    if (stands_for_itself(point)) {
      made += rest.substr(0, point.bytes);
    } else {
      constexpr const char* kDigits = "0123456789abcdef";
      made += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) made += kDigits[(point.value >> shift) & 15];
    }
    rest.remove_prefix(point.bytes);
  }
  return made + "\"";
}

std::string block(const std::string& text) {
  const bool plain = std::ranges::all_of(
      text, [](unsigned char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); });
  const bool begins = !text.empty() && text.front() != ' ' && text.front() != '\n';
  const bool ends = text.size() > 1 && text.ends_with('\n') && text[text.size() - 2] != '\n';
  if (!plain || !begins || !ends) return quoted(text);
  return "|\n  " + placed(text.substr(0, text.size() - 1), 2);
}

}  // namespace tandem::launch
