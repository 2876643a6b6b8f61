#include "actors/model/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/model/utf8.h"
#include "runtime/base/check.h"

namespace tandem::actors {
namespace {

constexpr auto kComposed = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

// No code point below U+0300 combines with the one before it or decomposes for good, and their lead
// bytes are below 0xCC.
bool passes_quick_check(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0xCC;
  });
}

int combining_class(std::int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

std::vector<std::int32_t> decomposed(std::string_view text) {
  std::vector<std::int32_t> points;
  points.reserve(text.size());
  std::array<std::int32_t, 8> parts{};  // a canonical decomposition has at most 4
  for (std::size_t at = 0; at < text.size();) {
    int boundary = 0;  // of graphemes, which nothing here asks for
    const auto count =
        utf8proc_decompose_char(static_cast<std::int32_t>(next_code_point(text, at)), parts.data(),
                                std::ssize(parts), kComposed, &boundary);
    CHECK(count >= 0 && count <= std::ssize(parts));
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  return points;
}

// Sorts each run of combining marks by class. utf8proc_decompose would do it too, in a time that is
// quadratic in the length of the run.
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

}  // namespace

std::optional<std::string> to_nfc(std::string_view text) {
  if (passes_quick_check(text)) return std::nullopt;
  std::vector<std::int32_t> points = decomposed(text);
  order_marks(points);
  const auto count = utf8proc_normalize_utf32(points.data(), std::ssize(points), kComposed);
  CHECK(count >= 0 && count <= std::ssize(points));
  std::string composed;
  composed.reserve(text.size());
  for (const std::int32_t c : std::span(points).first(static_cast<std::size_t>(count)))
    append_utf8(composed, static_cast<std::uint32_t>(c));
  if (composed == text) return std::nullopt;
  return composed;
}

}  // namespace tandem::actors
