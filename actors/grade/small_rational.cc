#include "actors/grade/small_rational.h"

#include <limits>

namespace tandem::grade {
namespace {

constexpr Int128 kLargest = (static_cast<Int128>(1) << 126) - 1;

Int128 size_of(Int128 value) { return value < 0 ? -value : value; }

Int128 common_divisor(Int128 a, Int128 b) {
  a = size_of(a);
  b = size_of(b);
  while (b != 0) {
    const Int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

std::optional<Int128> product(Int128 a, Int128 b) {
  Int128 result = 0;
  if (__builtin_mul_overflow(a, b, &result) || size_of(result) > kLargest) return std::nullopt;
  return result;
}

}  // namespace

MaybeRational make_rational(Int128 above, Int128 below) {
  if (below == 0 || size_of(above) > kLargest || size_of(below) > kLargest) return std::nullopt;
  const Int128 common = common_divisor(above, below);
  const Int128 sign = below < 0 ? -1 : 1;
  return SmallRational{.above = sign * (above / common), .below = sign * (below / common)};
}

MaybeRational add(const SmallRational& a, const SmallRational& b) {
  const Int128 common = common_divisor(a.below, b.below);
  const auto left = product(a.above, b.below / common), right = product(b.above, a.below / common);
  const auto below = product(a.below, b.below / common);
  if (!left || !right || !below) return std::nullopt;
  return make_rational(*left + *right, *below);  // two numbers of 126 bits do not overflow
}

MaybeRational multiply(const SmallRational& a, const SmallRational& b) {
  if (a.above == 0 || b.above == 0) return SmallRational{};
  const Int128 across = common_divisor(a.above, b.below), other = common_divisor(b.above, a.below);
  const auto above = product(a.above / across, b.above / other);
  const auto below = product(a.below / other, b.below / across);
  if (!above || !below) return std::nullopt;
  return SmallRational{.above = *above, .below = *below};
}

MaybeRational divide(const SmallRational& a, const SmallRational& b) {
  const MaybeRational inverse = make_rational(b.below, b.above);
  return inverse ? multiply(a, *inverse) : std::nullopt;
}

MaybeRational power(const SmallRational& base, std::int64_t exponent) {
  if (exponent < 0) {
    const MaybeRational inverse = make_rational(base.below, base.above);
    if (!inverse || exponent == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
    return power(*inverse, -exponent);
  }
  if (base.whole() && size_of(base.above) <= 1)
    return base.above >= 0 && exponent > 0 ? base
                                           : SmallRational{exponent % 2 == 0 ? 1 : base.above, 1};
  SmallRational total{1, 1}, square = base;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) {
      const MaybeRational next = multiply(total, square);
      if (!next) return std::nullopt;
      total = *next;
    }
    if (exponent == 1) break;
    const MaybeRational next = multiply(square, square);
    if (!next) return std::nullopt;
    square = *next;
  }
  return total;
}

MaybeRational read_rational(std::string_view digits) {
  Int128 above = 0, below = 1;
  bool point = false, any = false;
  const bool minus = digits.starts_with('-');
  if (minus) digits.remove_prefix(1);
  for (const char c : digits) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    any = true;
    if (above > (kLargest - 9) / 10 || (point && below > kLargest / 10)) return std::nullopt;
    above = 10 * above + (c - '0');
    if (point) below *= 10;
  }
  return any ? make_rational(minus ? -above : above, below) : std::nullopt;
}

Int128 floor_of(const SmallRational& value) {
  const Int128 quotient = value.above / value.below;
  return value.above % value.below < 0 ? quotient - 1 : quotient;
}

std::optional<std::int64_t> small_whole(const SmallRational& value) {
  if (!value.whole() || size_of(value.above) > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return static_cast<std::int64_t>(value.above);
}

std::optional<int> compare(const SmallRational& a, const SmallRational& b) {
  const auto left = product(a.above, b.below), right = product(b.above, a.below);
  if (!left || !right) return std::nullopt;
  return *left < *right ? -1 : *left > *right ? 1 : 0;
}

}  // namespace tandem::grade
