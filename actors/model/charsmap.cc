// A unit of the trie is reached by one byte of a key. From the place `base` the byte c leads to the
// unit base ^ c, if that has the label c; the unit's offset then gives the next base. A key ends at
// a unit that says so, and the unit at the next base holds the place of its text.
#include "actors/model/charsmap.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "actors/model/utf8.h"
#include "runtime/base/base64.h"

namespace tandem::model {
namespace {

constexpr std::size_t kGraphemeBytesMax = 5;  // of one that is looked up whole

constexpr std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
// A unit that holds a value has the highest bit, and thus no label that a byte equals.
constexpr std::uint32_t label_of(std::uint32_t unit) { return unit & (1u << 31 | 0xFF); }
constexpr bool ends_key(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr std::uint32_t value_of(std::uint32_t unit) { return unit & ~(1u << 31); }

Error fault(const std::string& what) { return Error{.message = what}; }

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Code points that continue a grapheme in the library's Unicode 17 and are unknown to libutf8proc's
// Unicode 15.
constexpr struct {
  std::uint32_t first, last;
} kYoungMarks[] = {{0x0897, 0x0897},   {0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},   {0x10D69, 0x10D6D},
                   {0x10EFA, 0x10EFC}, {0x113B8, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5},
                   {0x113C7, 0x113CA}, {0x113CC, 0x113D0}, {0x113D2, 0x113D2}, {0x113E1, 0x113E2},
                   {0x11B60, 0x11B67}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F}, {0x1E5EE, 0x1E5EF},
                   {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6}, {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5}};

// A code point that libutf8proc treats as the library treats `c`.
utf8proc_int32_t like(std::uint32_t c) {
  constexpr utf8proc_int32_t kMark = 0x300, kBeforeOthers = 0x600, kLetter = 'a';
  if (c == 0x113D1) return kBeforeOthers;  // younger than Unicode 15
  if (c == 0x11A3A) return kLetter;        // in Unicode 15 it goes before others
  const auto* range =
      std::ranges::lower_bound(kYoungMarks, c, {}, [](const auto& each) { return each.last; });
  const bool young = range != std::end(kYoungMarks) && range->first <= c;
  return young ? kMark : static_cast<utf8proc_int32_t>(c);
}

// The end of the grapheme that begins at `begin`.
std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  utf8proc_int32_t before = like(next_code_point(text, at));
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    std::size_t next = at;
    const utf8proc_int32_t after = like(next_code_point(text, next));
    if (before < 0x80 && after < 0x80 && before != '\r') return at;
    if (utf8proc_grapheme_break_stateful(before, after, &state)) return at;
    before = after;
    at = next;
  }
  return at;
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view blob) {
  const std::optional<std::string> bytes = decode_base64(blob);
  if (!bytes) return fault("it is not in Base64");
  if (bytes->size() < 4) return fault("it is shorter than its first number");
  const std::size_t size = little_endian(*bytes, 0);
  if (size == 0 || size % 4 != 0 || size > bytes->size() - 4 || size / 4 > kCharsmapUnitsMax)
    return fault("its trie has " + std::to_string(size) + " bytes, and " +
                 std::to_string(bytes->size() - 4) + " follow");
  Charsmap map;
  map.units_.reserve(size / 4);
  for (std::size_t at = 4; at < 4 + size; at += 4) map.units_.push_back(little_endian(*bytes, at));
  map.texts_ = bytes->substr(4 + size);
  if (const auto wrong = map.fault_in_texts()) return fault(*wrong);
  if (const auto wrong = map.fault_in_trie()) return fault(*wrong);
  return map;
}

std::optional<std::string> Charsmap::fault_in_texts() const {
  if (!texts_.ends_with('\0')) return "its last text has no end";
  if (const auto at = first_malformed_utf8(texts_))
    return "its texts are not UTF-8 at byte " + std::to_string(*at);
  for (std::size_t begin = 0; begin < texts_.size();) {
    const std::size_t end = texts_.find('\0', begin);
    if (end - begin > kCharsmapTextBytesMax)
      return "its text at byte " + std::to_string(begin) + " is longer than " +
             std::to_string(kCharsmapTextBytesMax) + " bytes";
    begin = end + 1;
  }
  return std::nullopt;
}

// Each base is walked once, whatever leads to it, so that a trie with cycles ends too.
std::optional<std::string> Charsmap::fault_in_trie() const {
  std::vector<bool> seen(units_.size());
  std::vector<std::size_t> bases{offset_of(units_[0])};
  while (!bases.empty()) {
    const std::size_t base = bases.back();
    bases.pop_back();
    for (std::size_t c = 1; c < 256; ++c) {
      const std::size_t at = base ^ c;
      if (at >= units_.size() || label_of(units_[at]) != c) continue;
      const std::size_t next = at ^ offset_of(units_[at]);
      if (next >= units_.size()) return "its trie leads out of it at unit " + std::to_string(at);
      if (ends_key(units_[at])) {
        const std::size_t place = value_of(units_[next]);
        if (place >= texts_.size() || (texts_[place] & 0xC0) == 0x80)
          return "its trie names a text at byte " + std::to_string(place) + ", where none begins";
      }
      if (seen[next]) continue;
      seen[next] = true;
      bases.push_back(next);
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> Charsmap::find(std::string_view chunk) const {
  std::size_t base = offset_of(units_[0]);
  for (const char c : chunk) {
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t at = base ^ byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) return std::nullopt;
    base = at ^ offset_of(units_[at]);
    if (ends_key(units_[at])) return std::string_view(texts_.data() + value_of(units_[base]));
  }
  return std::nullopt;
}

std::optional<std::string> Charsmap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  bool changed = false;
  const auto put = [&](std::string_view chunk) {
    const auto becomes = find(chunk);
    if (becomes) out += *becomes;
    changed = changed || becomes;
    return becomes.has_value();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = grapheme_end(text, at);
    if (end - at <= kGraphemeBytesMax && put(text.substr(at, end - at))) {
      at = end;
      continue;
    }
    while (at < end) {
      const std::size_t begin = at;
      next_code_point(text, at);
      const std::string_view character = text.substr(begin, at - begin);
      if (!put(character)) out += character;
    }
  }
  if (!changed) return std::nullopt;
  return out;
}

}  // namespace tandem::model
