#include "actors/model/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "actors/model/utf8.h"
#include "runtime/base/check.h"

namespace tandem::model {
namespace {

constexpr auto kComposed = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

// Text whose code points are all below U+0300 is in NFC: none of them combines with the one before
// it, and those that decompose compose again. Their UTF-8 bytes are all below 0xCC.
bool passes_quick_check(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0xCC;
  });
}

// Ranges that hold all code points younger than Unicode 9 that have a combining class or take part
// in a composition, as of Unicode 18. Other code points in a range are as young or not assigned.
constexpr struct {
  std::int32_t first, last;
} kYoung[] = {{0x05C8, 0x05C9},   {0x07FD, 0x07FD},   {0x0897, 0x089F},   {0x08CA, 0x08D3},
              {0x09FE, 0x09FE},   {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},
              {0x1715, 0x1715},   {0x1ABF, 0x1AF0},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
              {0x105C9, 0x105E4}, {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC},
              {0x10ECB, 0x10ECF}, {0x10EF0, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
              {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x11382, 0x113D0}, {0x1145E, 0x1145E},
              {0x11839, 0x1183A}, {0x11930, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
              {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D45}, {0x11D97, 0x11D97},
              {0x11F41, 0x11F42}, {0x1611E, 0x1612F}, {0x16D63, 0x16D6A}, {0x16FF0, 0x16FF1},
              {0x1D127, 0x1D128}, {0x1D250, 0x1D281}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
              {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF},
              {0x1E6E3, 0x1E6F5}};

bool is_young(std::int32_t c) {
  const auto* range = std::ranges::lower_bound(kYoung, c, {}, [](const auto& r) { return r.last; });
  return range != std::end(kYoung) && range->first <= c;
}

int combining_class(std::int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

void append_decomposed(std::vector<std::int32_t>& points, std::int32_t c) {
  std::array<std::int32_t, 8> parts{};  // a canonical decomposition has at most 4
  int boundary = 0;                     // boundaries of graphemes, which no code here asks for
  const auto count =
      utf8proc_decompose_char(c, parts.data(), std::ssize(parts), kComposed, &boundary);
  CHECK(count >= 0 && count <= std::ssize(parts));
  points.insert(points.end(), parts.begin(), parts.begin() + count);
}

// Sorts each run of combining marks by class. utf8proc_decompose would do the same, but in a time
// that is quadratic in the length of the run, which a hostile prompt could exploit.
void order_marks(std::vector<std::int32_t>& points) {
  const auto is_mark = [](std::int32_t c) { return combining_class(c) != 0; };
  for (auto at = points.begin(); at != points.end();) {
    at = std::find_if(at, points.end(), is_mark);
    const auto end = std::find_if_not(at, points.end(), is_mark);
    std::stable_sort(at, end, [](std::int32_t a, std::int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    at = end;
  }
}

// Composes the decomposed code points, appends the result to `text` and leaves `points` empty.
void append_composed(std::string& text, std::vector<std::int32_t>& points) {
  order_marks(points);
  const auto count = utf8proc_normalize_utf32(points.data(), std::ssize(points), kComposed);
  CHECK(count >= 0 && count <= std::ssize(points));
  for (const std::int32_t c : std::span(points).first(static_cast<std::size_t>(count)))
    append_utf8(text, static_cast<std::uint32_t>(c));
  points.clear();
}

}  // namespace

std::optional<std::string> to_nfc(std::string_view text) {
  if (passes_quick_check(text)) return std::nullopt;
  std::string composed;
  composed.reserve(text.size());
  std::vector<std::int32_t> points;  // decomposed code points since the last young one
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t code_point = next_code_point(text, at);
    const auto c = static_cast<std::int32_t>(code_point);
    if (!is_young(c)) {
      append_decomposed(points, c);
      continue;
    }
    append_composed(composed, points);
    append_utf8(composed, code_point);
  }
  append_composed(composed, points);
  if (composed == text) return std::nullopt;
  return composed;
}

}  // namespace tandem::model
