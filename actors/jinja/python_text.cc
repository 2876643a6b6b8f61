#include "actors/jinja/python_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/text.h"

namespace tandem::jinja {
namespace {

bool strips(char32_t code, const std::optional<std::string_view>& characters) {
  if (!characters) return is_space(code);
  for (std::size_t at = 0; at < characters->size();)
    if (next_code_point(*characters, at) == code) return true;
  return false;
}

std::string_view strip_left(std::string_view text, const std::optional<std::string_view>& chars) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (!strips(next_code_point(text, at), chars)) return text.substr(here);
  }
  return {};
}

std::string_view strip_right(std::string_view text, const std::optional<std::string_view>& chars) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view kept = rest;
    if (!strips(pop_last(rest), chars)) return kept;
  }
  return {};
}

std::vector<std::string_view> split_at_spaces(std::string_view text, std::int64_t cuts) {
  std::vector<std::string_view> parts;
  text = strip_left(text, {});
  while (!text.empty()) {
    if (cuts >= 0 && std::ssize(parts) == cuts) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size() && !is_space(next_code_point(text, at)); end = at) {
    }
    parts.push_back(text.substr(0, end));
    text = strip_left(text.substr(end), {});
  }
  return parts;
}

std::vector<std::string_view> split_at_spaces_from_right(std::string_view text, std::int64_t cuts) {
  std::vector<std::string_view> parts;
  text = strip_right(text, {});
  while (!text.empty()) {
    if (cuts >= 0 && std::ssize(parts) == cuts) {
      parts.push_back(text);
      break;
    }
    std::string_view before = text;
    std::size_t begin = text.size();
    while (!before.empty() && !is_space(pop_last(before))) begin = before.size();
    parts.push_back(text.substr(begin));
    text = strip_right(text.substr(0, begin), {});
  }
  std::ranges::reverse(parts);
  return parts;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

// Digits, underscores between them taken away; nothing where there is something else.
std::optional<std::string> digits_of(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && (i == 0 || i + 1 == text.size() || text[i + 1] == '_')) return {};
    if (text[i] != '_') digits += text[i];
  }
  return digits;
}

std::string mantissa(const std::string& digits) {
  return digits.size() == 1 ? digits : digits.substr(0, 1) + "." + digits.substr(1);
}

}  // namespace

void append_code_point(std::string& out, char32_t code) {
  const auto byte = [&](char32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | (code >> 6));
  } else if (code < 0x10000) {
    byte(0xe0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3f));
  } else {
    byte(0xf0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3f));
    byte(0x80 | ((code >> 6) & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const char first = text[at];
  if ((first & 0x80) == 0) {
    ++at;
    return static_cast<unsigned char>(first);
  }
  const CodePoint code = first_code_point(text.substr(at));
  at += code.bytes;
  return code.value;
}

char32_t pop_last(std::string_view& text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (text[begin] & 0xc0) == 0x80) --begin;
  std::size_t at = begin;
  const char32_t code = next_code_point(text, at);
  text = text.substr(0, begin);
  return code;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

std::size_t byte_of(std::string_view text, std::size_t index) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if ((text[at] & 0xc0) != 0x80 && index-- == 0) return at;
  return text.size();
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string_view strip(std::string_view text, std::optional<std::string_view> characters,
                       Side side) {
  if (side != Side::kRight) text = strip_left(text, characters);
  if (side != Side::kLeft) text = strip_right(text, characters);
  return text;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, std::int64_t cuts) {
  if (!separator) return split_at_spaces(text, cuts);
  std::vector<std::string_view> parts;
  while (cuts < 0 || std::ssize(parts) < cuts) {
    const std::size_t end = text.find(*separator);
    if (end == text.npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + separator->size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               std::int64_t cuts) {
  if (!separator) return split_at_spaces_from_right(text, cuts);
  std::vector<std::string_view> parts;
  while (cuts < 0 || std::ssize(parts) < cuts) {
    const std::size_t begin = text.rfind(*separator);
    if (begin == text.npos) break;
    parts.push_back(text.substr(begin + separator->size()));
    text = text.substr(0, begin);
  }
  parts.push_back(text);
  std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t code = next_code_point(text, at);
    if (!is_line_end(code)) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : here) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::optional<std::string> replace(std::string_view text, std::string_view from,
                                   std::string_view to, std::int64_t count, std::size_t bytes_max) {
  std::string out;
  std::size_t at = 0;
  for (; count != 0 && out.size() <= bytes_max; --count) {
    if (from.empty()) {  // `to` comes before each character, and at the end
      out += to;
      if (at == text.size()) return out.size() <= bytes_max ? std::optional(out) : std::nullopt;
      const std::size_t here = at;
      next_code_point(text, at);
      out += text.substr(here, at - here);
      continue;
    }
    const std::size_t found = text.find(from, at);
    if (found == text.npos) break;
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  out += text.substr(at);
  if (out.size() > bytes_max) return std::nullopt;
  return out;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return count_characters(text) + 1;
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr std::string_view kSpecial = "&<>'\"";
    constexpr const char* kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const std::size_t which = kSpecial.find(c);
    if (which == kSpecial.npos)
      out += c;
    else
      out += kEntities[which];
  }
  return out;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::string sign = text.starts_with('-') ? "-" : "";
  text.remove_prefix(sign.size());
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const char* const from = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(from, text.data() + text.size(), exponent);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    const std::string power = std::to_string(std::abs(exponent));
    return sign + mantissa(digits) + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") +
           power;
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return sign + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return sign + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<std::size_t>(exponent) + 1);
}

std::optional<std::int64_t> parse_int(std::string_view text, std::int64_t base) {
  text = strip(text, {}, Side::kBoth);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (base != 0 && (base < 2 || base > 36)) return {};
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (named != 0 && (base == 0 || base == named)) {
      base = named;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  const auto digits = digits_of(text);
  if (!digits || digits->empty() || digits->front() == '-' || digits->front() == '+') return {};
  if (base == 0 && digits->front() == '0' && digits->find_first_not_of('0') != digits->npos)
    return {};
  std::int64_t value = 0;
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  const char* const end = signed_digits.data() + signed_digits.size();
  const auto read =
      std::from_chars(signed_digits.data(), end, value, static_cast<int>(base == 0 ? 10 : base));
  if (read.ec != std::errc() || read.ptr != end) return {};
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, {}, Side::kBoth);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string word = lower(text);
  const double sign = negative ? -1.0 : 1.0;
  if (word == "inf" || word == "infinity") return sign * HUGE_VAL;
  if (word == "nan") return std::nan("");
  const auto digits = digits_of(text);
  if (!digits || digits->empty() || digits->find_first_not_of("0123456789.eE+-") != digits->npos ||
      digits->front() == '-' || digits->front() == '+')
    return {};
  double value = 0;
  const char* const end = digits->data() + digits->size();
  const auto read = std::from_chars(digits->data(), end, value);
  if (read.ptr != end) return {};
  if (read.ec == std::errc::result_out_of_range)
    return digits->find("e-") != digits->npos || digits->find("E-") != digits->npos
               ? sign * 0.0
               : sign * HUGE_VAL;
  if (read.ec != std::errc()) return {};
  return sign * value;
}

}  // namespace tandem::jinja
