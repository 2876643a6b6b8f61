#include "actors/model/utf8.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace tandem::model {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// How many bytes a character with this lead byte has. 0: no character begins with this byte.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// How many bytes from `at` on are a beginning of one well-formed character, or all of it. The
// second byte has a narrower range after some lead bytes (table 3-7).
std::size_t well_formed_prefix(std::string_view text, std::size_t at) {
  const unsigned char lead = byte_at(text, at);
  const std::size_t length = length_of(lead);
  if (length == 0) return 0;
  std::size_t count = 1;
  while (count < length && at + count < text.size()) {
    const unsigned char next = byte_at(text, at + count);
    unsigned char low = 0x80, high = 0xBF;
    if (count == 1 && lead == 0xE0) low = 0xA0;   // overlong
    if (count == 1 && lead == 0xED) high = 0x9F;  // surrogates
    if (count == 1 && lead == 0xF0) low = 0x90;   // overlong
    if (count == 1 && lead == 0xF4) high = 0x8F;  // past U+10FFFF
    if (next < low || next > high) break;
    ++count;
  }
  return count;
}

}  // namespace

std::optional<std::size_t> first_malformed_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    // first_code_point() has the rules of table 3-7; the code here only adds lengths of broken
    // parts.
    const CodePoint point = first_code_point(text.substr(at));
    if (!point.valid) return at;
    at += point.bytes;
  }
  return std::nullopt;
}

std::string replace_malformed_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (const auto offset = first_malformed_utf8(text)) {
    out += text.substr(0, *offset);
    out += "\uFFFD";
    text = text.substr(*offset + std::max<std::size_t>(1, well_formed_prefix(text, *offset)));
  }
  out += text;
  return out;
}

std::size_t unfinished_utf8(std::string_view text) {
  // A character has at most four bytes, so at most three of an unfinished one are there.
  for (std::size_t tail = 1; tail <= std::min<std::size_t>(3, text.size()); ++tail) {
    const std::size_t at = text.size() - tail;
    if (length_of(byte_at(text, at)) > tail && well_formed_prefix(text, at) == tail) return tail;
  }
  return 0;
}

std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const CodePoint point = first_code_point(text.substr(at));
  at += point.bytes;
  return point.value;
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace tandem::model
