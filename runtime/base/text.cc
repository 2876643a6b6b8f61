#include "runtime/base/text.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tandem {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr std::string_view kEllipsis = "…";
constexpr CodePoint kInvalid{0xFFFD, 1, false};

// The sequences that start with one lead byte; 0 bytes: none does.
struct Shape {
  std::size_t bytes;
  char32_t least;  // a smaller value has a shorter form, so that this one is overlong
};

Shape shape_of(unsigned char lead) {
  if (lead < 0x80) return {1, 0};
  if (lead < 0xC0) return {0, 0};
  if (lead < 0xE0) return {2, 0x80};
  if (lead < 0xF0) return {3, 0x800};
  if (lead < 0xF8) return {4, 0x10000};
  return {0, 0};
}

// Printable ASCII, which visible() leaves as it is.
bool is_plain(char c) { return c >= 0x20 && c < 0x7F; }

// C0, DEL and C1; the Arabic letter mark and the left-to-right and right-to-left marks; the line
// and paragraph separators with the embeddings and overrides behind them; the isolates. Embeddings
// and overrides can make a terminal show text in another order than it has.
bool steers(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// Takes characters up to U+FFFF, as all that steer are.
std::string escape(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += kHex[(c >> shift) & 15];
  return text;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  CHECK(!text.empty());
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto [bytes, least] = shape_of(byte(0));
  if (bytes == 0 || text.size() < bytes) return kInvalid;
  if (bytes == 1) return {byte(0), 1, true};
  char32_t value = byte(0) & (0x7Fu >> bytes);  // the bits behind the lead byte's ones and zero
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return kInvalid;
    value = (value << 6) | (byte(i) & 0x3F);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < least || surrogate || value > 0x10FFFF) return kInvalid;
  return {value, bytes, true};
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    valid += point.valid ? text.substr(0, point.bytes) : kReplacement;
    text.remove_prefix(point.bytes);
  }
  return valid;
}

std::string cut_utf8(std::string_view text, std::size_t bytes_max) {
  // Only as much as can matter is made valid. A character that this first cut breaks begins behind
  // bytes_max, so that the U+FFFD in its place is dropped below.
  constexpr std::size_t kCharacterBytesMax = 4;
  std::string valid = valid_utf8(text.substr(0, bytes_max + kCharacterBytesMax));
  if (valid.size() <= bytes_max) return valid;
  std::size_t end = bytes_max;  // goes back to the start of the character that crosses it
  while (end > 0 && (static_cast<unsigned char>(valid[end]) & 0xC0) == 0x80) --end;
  valid.resize(end);
  return valid + std::string(kEllipsis);
}

std::string visible(std::string_view text, Lines lines) {
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const bool kept = lines == Lines::kMany && (point.value == '\n' || point.value == '\t');
    if (!point.valid)
      shown += kReplacement;
    else if (steers(point.value) && !kept)
      shown += escape(point.value);
    else
      shown += text.substr(0, point.bytes);
    text.remove_prefix(point.bytes);
  }
  return shown;
}

std::string percent_encoded(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~";
  std::string encoded;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kHex[byte >> 4];
    encoded += kHex[byte & 15];
  }
  return encoded;
}

}  // namespace tandem
