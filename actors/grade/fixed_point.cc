// Schoolbook arithmetic on twelve limbs. Series are summed in plain fixed point, and each function
// adds to the error what its arguments' errors make of it, and kSeriesBits for its own rounding.
//
// Library floats were tried: the 512 digits of Boost.Multiprecision take 0.2 to 1 ms for an
// exponential or an arc tangent, and its headers ten seconds to compile; these take about 10 μs.
#include "actors/grade/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tandem::grade {
namespace {

__extension__ using Wide = unsigned __int128;

// Rounding within a series loses at most this many of the last digits.
constexpr double kSeriesError = -kFractionBits + 24;
constexpr double kOperationError = -kFractionBits + 1;

using Limbs = std::array<std::uint64_t, kLimbs>;

bool less(const Limbs& a, const Limbs& b) {
  for (int i = kLimbs; i-- > 0;)
    if (a[i] != b[i]) return a[i] < b[i];
  return false;
}

bool none(const Limbs& a) {
  return std::ranges::all_of(a, [](std::uint64_t limb) { return limb == 0; });
}

int bits_of(const Limbs& a) {
  for (int i = kLimbs; i-- > 0;)
    if (a[i] != 0) return 64 * i + static_cast<int>(std::bit_width(a[i]));
  return 0;
}

// True if it does not fit.
bool add_to(Limbs& a, const Limbs& b) {
  Wide carry = 0;
  for (int i = 0; i < kLimbs; ++i) {
    carry += static_cast<Wide>(a[i]) + b[i];
    a[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return carry != 0 || (a[kLimbs - 1] >> 63) != 0;
}

Limbs subtracted(const Limbs& a, const Limbs& b) {  // a ≥ b
  Limbs rest{};
  std::uint64_t borrow = 0;
  for (int i = 0; i < kLimbs; ++i) {
    const Wide taken = static_cast<Wide>(b[i]) + borrow;
    borrow = taken > a[i] ? 1 : 0;
    rest[i] = static_cast<std::uint64_t>(static_cast<Wide>(a[i]) - taken);
  }
  return rest;
}

FixedPoint plus(const FixedPoint& a, const FixedPoint& b, bool& overflow) {
  FixedPoint sum = a;
  if (a.minus == b.minus) {
    overflow = add_to(sum.limbs, b.limbs) || overflow;
  } else if (less(a.limbs, b.limbs)) {
    sum = {.minus = b.minus, .limbs = subtracted(b.limbs, a.limbs)};
  } else {
    sum.limbs = subtracted(a.limbs, b.limbs);
  }
  if (none(sum.limbs)) sum.minus = false;
  return sum;
}

// `exact` tells whether no digit was lost.
FixedPoint times(const FixedPoint& a, const FixedPoint& b, bool& overflow, bool* exact = nullptr) {
  std::array<std::uint64_t, 2 * kLimbs> wide{};
  for (int i = 0; i < kLimbs; ++i) {
    if (a.limbs[i] == 0) continue;
    std::uint64_t carry = 0;
    for (int j = 0; j < kLimbs; ++j) {
      const Wide sum = static_cast<Wide>(a.limbs[i]) * b.limbs[j] + wide[i + j] + carry;
      wide[i + j] = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> 64);
    }
    wide[i + kLimbs] = carry;
  }
  FixedPoint product{.minus = a.minus != b.minus};
  std::copy_n(wide.begin() + kFractionLimbs, kLimbs, product.limbs.begin());
  const auto lost = [](std::uint64_t limb) { return limb != 0; };
  if (std::any_of(wide.begin() + kFractionLimbs + kLimbs, wide.end(), lost) ||
      (product.limbs[kLimbs - 1] >> 63) != 0)
    overflow = true;
  if (exact) *exact = std::none_of(wide.begin(), wide.begin() + kFractionLimbs, lost);
  if (none(product.limbs)) product.minus = false;
  return product;
}

// True if nothing is left over.
bool divide_by(FixedPoint& a, std::uint64_t divisor) {
  Wide rest = 0;
  for (int i = kLimbs; i-- > 0;) {
    rest = (rest << 64) | a.limbs[i];
    a.limbs[i] = static_cast<std::uint64_t>(rest / divisor);
    rest %= divisor;
  }
  if (none(a.limbs)) a.minus = false;
  return rest == 0;
}

FixedPoint shifted_right(const FixedPoint& a, int bits) {
  FixedPoint result{.minus = a.minus};
  const int limbs = bits / 64, rest = bits % 64;
  for (int i = 0; i + limbs < kLimbs; ++i) {
    result.limbs[i] = a.limbs[i + limbs] >> rest;
    if (rest > 0 && i + limbs + 1 < kLimbs)
      result.limbs[i] |= a.limbs[i + limbs + 1] << (64 - rest);
  }
  if (none(result.limbs)) result.minus = false;
  return result;
}

FixedPoint shifted_left(const FixedPoint& a, int bits, bool& overflow) {
  if (bits_of(a.limbs) + bits >= 64 * kLimbs) {
    overflow = true;
    return {};
  }
  FixedPoint result{.minus = a.minus};
  const int limbs = bits / 64, rest = bits % 64;
  for (int i = kLimbs; i-- > limbs;) {
    result.limbs[i] = a.limbs[i - limbs] << rest;
    if (rest > 0 && i - limbs - 1 >= 0) result.limbs[i] |= a.limbs[i - limbs - 1] >> (64 - rest);
  }
  return result;
}

FixedPoint whole_number(std::uint64_t value) {
  FixedPoint result;
  result.limbs[kFractionLimbs] = value;
  return result;
}

// About 50 digits of the value.
double rough(const FixedPoint& a) {
  double total = 0;
  for (int i = kLimbs; i-- > 0;)
    total += std::ldexp(static_cast<double>(a.limbs[i]), 64 * (i - kFractionLimbs));
  return a.minus ? -total : total;
}

FixedPoint from_rough(double value) {
  FixedPoint result{.minus = value < 0};
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);
  FixedPoint whole;
  whole.limbs[0] = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
  const int shift = exponent - 53 + kFractionBits;
  bool overflow = false;
  result.limbs =
      (shift >= 0 ? shifted_left(whole, shift, overflow) : shifted_right(whole, -shift)).limbs;
  return result;
}

// 1/a to about 570 digits, by Newton's iteration; a must be within [1/2, 1).
FixedPoint reciprocal(const FixedPoint& a) {
  bool overflow = false;
  FixedPoint inverse = from_rough(1 / rough(a));
  for (int i = 0; i < 4; ++i) {
    FixedPoint rest = times(a, inverse, overflow);
    rest.minus = !rest.minus;
    rest = plus(rest, whole_number(2), overflow);
    inverse = times(inverse, rest, overflow);
  }
  return inverse;
}

// The sum of x^n/n!, from n = 0, for |x| below 2^-8.
FixedPoint exponential_series(const FixedPoint& x) {
  bool overflow = false;
  FixedPoint total = whole_number(1), term = total;
  for (std::uint64_t n = 1; !none(term.limbs); ++n) {
    term = times(term, x, overflow);
    divide_by(term, n);
    total = plus(total, term, overflow);
  }
  return total;
}

// The arc tangent of x, for |x| below 1/8.
FixedPoint arc_tangent_series(const FixedPoint& x) {
  bool overflow = false;
  FixedPoint square = times(x, x, overflow), power = x, total = x;
  square.minus = !none(square.limbs);
  for (std::uint64_t n = 3; !none(power.limbs); n += 2) {
    power = times(power, square, overflow);
    FixedPoint term = power;
    divide_by(term, n);
    total = plus(total, term, overflow);
  }
  return total;
}

FixedPoint arc_tangent_of_inverse(std::uint64_t n) {
  FixedPoint x = whole_number(1);
  divide_by(x, n);
  return arc_tangent_series(x);
}

const FixedPoint& pi_value() {  // Machin: 16 atan(1/5) - 4 atan(1/239), with 1/5 taken apart
  static const FixedPoint value = [] {
    // atan(1/5) = 2 atan(1/10) - atan(1/515)
    bool overflow = false;
    FixedPoint total = shifted_left(arc_tangent_of_inverse(10), 5, overflow);
    FixedPoint second = shifted_left(arc_tangent_of_inverse(515), 4, overflow);
    FixedPoint third = shifted_left(arc_tangent_of_inverse(239), 2, overflow);
    second.minus = third.minus = true;
    return plus(plus(total, second, overflow), third, overflow);
  }();
  return value;
}

const FixedPoint& log_two() {  // 2 atanh(1/3)
  static const FixedPoint value = [] {
    bool overflow = false;
    FixedPoint power = whole_number(2), total;
    divide_by(power, 3);
    for (std::uint64_t n = 1; !none(power.limbs); n += 2) {
      FixedPoint term = power;
      divide_by(term, n);
      total = plus(total, term, overflow);
      divide_by(power, 9);
    }
    return total;
  }();
  return value;
}

// The nearest whole number; none beyond 40 digits.
std::optional<std::int64_t> nearest(const FixedPoint& value) {
  if (bits_of(value.limbs) > kFractionBits + 40) return std::nullopt;
  return std::llround(rough(value));
}

FixedPoint multiple(const FixedPoint& of, std::int64_t count, bool& overflow) {
  FixedPoint factor = whole_number(static_cast<std::uint64_t>(std::abs(count)));
  factor.minus = count < 0;
  return times(of, factor, overflow);
}

double larger(std::initializer_list<double> errors) { return std::max(errors); }

}  // namespace

Ball zero() { return {}; }

MaybeBall ball_of(Int128 value) {
  Ball ball{.middle = {.minus = value < 0}};
  const auto size = static_cast<Wide>(value < 0 ? -value : value);
  ball.middle.limbs[kFractionLimbs] = static_cast<std::uint64_t>(size);
  ball.middle.limbs[kFractionLimbs + 1] = static_cast<std::uint64_t>(size >> 64);
  return ball;
}

MaybeBall ball_of(const SmallRational& value) {
  const MaybeBall above = ball_of(value.above), below = ball_of(value.below);
  if (value.whole()) return above;
  return divide(*above, *below);
}

MaybeBall ball_of_digits(const char* first, const char* last) {
  const auto digit = [](char c) { return whole_number(static_cast<std::uint64_t>(c - '0')); };
  const char* const point = std::find(first, last, '.');
  bool overflow = false, exact = true;
  FixedPoint whole, part;
  for (const char* at = first; at != point && !overflow; ++at)
    whole = plus(times(whole, whole_number(10), overflow), digit(*at), overflow);
  for (const char* at = last; at > point + 1;) {  // the digits behind the point, from the last one
    part = plus(part, digit(*--at), overflow);
    exact = divide_by(part, 10) && exact;
  }
  const Ball ball{.middle = plus(whole, part, overflow),
                  .error = exact ? kExact : kOperationError + 1};
  return overflow ? std::nullopt : MaybeBall(ball);
}

Ball pi() { return {.middle = pi_value(), .error = kSeriesError}; }

double magnitude(const Ball& value) {
  const int bits = bits_of(value.middle.limbs);
  return bits == 0 ? kExact : bits - kFractionBits;
}

double rough_value(const Ball& value) { return rough(value.middle); }
bool may_be_zero(const Ball& value) { return magnitude(value) - 1 <= value.error; }
bool is_zero(const Ball& value) { return value.error == kExact && none(value.middle.limbs); }
bool is_whole(const Ball& value) {
  return value.error == kExact &&
         std::all_of(value.middle.limbs.begin(), value.middle.limbs.begin() + kFractionLimbs,
                     [](std::uint64_t limb) { return limb == 0; });
}
std::optional<int> whole_of(const Ball& value) {
  if (!is_whole(value) || bits_of(value.middle.limbs) > kFractionBits + 31) return std::nullopt;
  const auto size = static_cast<int>(value.middle.limbs[kFractionLimbs]);
  return value.middle.minus ? -size : size;
}

Ball negated(Ball value) {
  value.middle.minus = !value.middle.minus && !none(value.middle.limbs);
  return value;
}

MaybeBall add(const Ball& a, const Ball& b) {
  bool overflow = false;
  const Ball sum{.middle = plus(a.middle, b.middle, overflow),
                 .error = a.error == kExact   ? b.error
                          : b.error == kExact ? a.error
                                              : larger({a.error, b.error}) + 1};
  return overflow ? std::nullopt : MaybeBall(sum);
}

MaybeBall multiply(const Ball& a, const Ball& b) {
  if (is_zero(a) || is_zero(b)) return zero();
  bool overflow = false, exact = true;
  Ball product{.middle = times(a.middle, b.middle, overflow, &exact)};
  if (overflow) return std::nullopt;
  if (a.error == kExact && b.error == kExact && exact) return product;
  product.error =
      larger({a.error + magnitude(b), b.error + magnitude(a), a.error + b.error, kOperationError}) +
      2;
  return product;
}

MaybeBall divide(const Ball& a, const Ball& b) {
  if (may_be_zero(b)) return std::nullopt;
  if (is_zero(a)) return zero();
  // b is brought to [1/2, 1), so that its inverse has all digits.
  const int shift = bits_of(b.middle.limbs) - kFractionBits;
  bool overflow = false;
  FixedPoint unit =
      shift >= 0 ? shifted_right(b.middle, shift) : shifted_left(b.middle, -shift, overflow);
  unit.minus = false;
  FixedPoint inverse = reciprocal(unit);
  inverse.minus = b.middle.minus;
  // Digits of b that the shift dropped count for less than the last digit of the inverse.
  const double inverse_error = kOperationError + 8;
  FixedPoint quotient = times(a.middle, inverse, overflow);
  double error = larger({inverse_error + magnitude(a), a.error + 1, kOperationError}) + 1;
  if (b.error != kExact)
    error = larger({error, b.error - shift + magnitude(a) + 3, a.error + b.error - shift + 3}) + 1;
  quotient = shift >= 0 ? shifted_right(quotient, shift) : shifted_left(quotient, -shift, overflow);
  error = larger({error - shift, kOperationError}) + 1;
  if (overflow) return std::nullopt;
  return Ball{.middle = quotient, .error = error};
}

MaybeBall square_root(const Ball& value) {
  if (is_zero(value)) return zero();
  if (may_be_zero(value))
    return Ball{.middle = {}, .error = larger({value.error, magnitude(value)}) / 2 + 2};
  if (value.middle.minus) return std::nullopt;
  // Brought to [1/4, 1) by an even power of two.
  int shift = bits_of(value.middle.limbs) - kFractionBits;
  if (shift % 2 != 0) ++shift;
  bool overflow = false;
  const FixedPoint unit = shift >= 0 ? shifted_right(value.middle, shift)
                                     : shifted_left(value.middle, -shift, overflow);
  // y = 1/√unit by y ← y + y(1 - unit·y²)/2
  FixedPoint inverse = from_rough(1 / std::sqrt(rough(unit)));
  for (int i = 0; i < 4; ++i) {
    FixedPoint rest = times(unit, times(inverse, inverse, overflow), overflow);
    rest.minus = !rest.minus;
    rest = plus(rest, whole_number(1), overflow);
    inverse = plus(inverse, shifted_right(times(inverse, rest, overflow), 1), overflow);
  }
  FixedPoint root = times(unit, inverse, overflow);
  root = shift >= 0 ? shifted_left(root, shift / 2, overflow) : shifted_right(root, -shift / 2);
  if (overflow) return std::nullopt;
  const double own = kOperationError + 8 + std::max(shift / 2, 0);
  const double from_value = value.error == kExact ? kExact : value.error - (shift / 2.0 - 2);
  return Ball{.middle = root, .error = larger({own, from_value}) + 1};
}

MaybeBall exponential(const Ball& value) {
  constexpr int kHalvings = 8;
  if (is_zero(value)) return ball_of(1);
  if (value.error > -8) return std::nullopt;
  bool overflow = false;
  const double size = rough(value.middle);
  if (std::fabs(size) > 130) return std::nullopt;
  const auto twos = static_cast<std::int64_t>(std::llround(size / 0.6931471805599453));
  const FixedPoint rest = plus(value.middle, multiple(log_two(), -twos, overflow), overflow);
  FixedPoint result = exponential_series(shifted_right(rest, kHalvings));
  for (int i = 0; i < kHalvings; ++i) result = times(result, result, overflow);
  const auto shift = static_cast<int>(twos);
  result = shift >= 0 ? shifted_left(result, shift, overflow) : shifted_right(result, -shift);
  if (overflow) return std::nullopt;
  const double scale = std::max(shift + 1, 0);
  return Ball{
      .middle = result,
      .error = larger({kSeriesError + 8 + scale, value.error + scale + 1, kOperationError}) + 1};
}

MaybeBall logarithm(const Ball& value) {
  if (may_be_zero(value) || value.middle.minus) return std::nullopt;
  const int shift = bits_of(value.middle.limbs) - kFractionBits;
  bool overflow = false;
  const Ball unit{.middle = shift >= 0 ? shifted_right(value.middle, shift)
                                       : shifted_left(value.middle, -shift, overflow)};
  // Halley's iteration y ← y + 2(u - e^y)/(u + e^y) triples the digits each time.
  Ball guess{.middle = from_rough(std::log(rough(unit.middle)))};
  for (int i = 0; i < 3; ++i) {
    const MaybeBall power = exponential(guess);
    if (!power) return std::nullopt;
    Ball above = unit, below = unit;
    FixedPoint taken = power->middle;
    taken.minus = true;
    above.middle = shifted_left(plus(unit.middle, taken, overflow), 1, overflow);
    below.middle = plus(unit.middle, power->middle, overflow);
    const MaybeBall step = divide(above, below);
    if (!step) return std::nullopt;
    guess.middle = plus(guess.middle, step->middle, overflow);
  }
  const FixedPoint result = plus(guess.middle, multiple(log_two(), shift, overflow), overflow);
  if (overflow) return std::nullopt;
  const double from_value = value.error == kExact ? kExact : value.error - (shift - 1) + 1;
  return Ball{.middle = result, .error = larger({kSeriesError + 12, from_value}) + 1};
}

MaybeBall arc_tangent(const Ball& value) {
  constexpr int kHalvings = 3;
  if (is_zero(value)) return zero();
  const bool minus = value.middle.minus;
  Ball x{.middle = value.middle};
  x.middle.minus = false;
  const bool beyond = magnitude(x) > 0;  // |x| ≥ 1: π/2 - atan(1/x)
  const Ball one = *ball_of(1);
  if (beyond) x = *divide(one, x);
  for (int i = 0; i < kHalvings; ++i) {  // atan x = 2 atan(x / (1 + √(1 + x²)))
    const Ball root = *square_root(*add(one, *multiply(x, x)));
    x = *divide(x, *add(one, root));
  }
  bool overflow = false;
  FixedPoint result = shifted_left(arc_tangent_series(x.middle), kHalvings, overflow);
  if (beyond) {
    result.minus = true;
    result = plus(shifted_right(pi_value(), 1), result, overflow);
  }
  result.minus = minus && !none(result.limbs);
  return Ball{.middle = result, .error = larger({kSeriesError + 12, value.error}) + 1};
}

std::optional<SineCosine> sine_cosine(const Ball& angle) {
  if (is_zero(angle)) return SineCosine{.sine = zero(), .cosine = *ball_of(1)};
  bool overflow = false;
  const FixedPoint quarter = shifted_right(pi_value(), 1);
  const auto quarters =
      nearest(FixedPoint{.minus = angle.middle.minus,
                         .limbs = from_rough(rough(angle.middle) / 1.5707963267948966).limbs});
  if (!quarters || angle.error > -8) return std::nullopt;
  const FixedPoint x = plus(angle.middle, multiple(quarter, -*quarters, overflow), overflow);
  const FixedPoint square = times(x, x, overflow);
  FixedPoint sine = x, cosine = whole_number(1), term = x;
  for (std::uint64_t n = 2; !none(term.limbs); n += 2) {
    term = times(term, square, overflow);
    divide_by(term, n * (n + 1));
    term.minus = !term.minus && !none(term.limbs);
    sine = plus(sine, term, overflow);
  }
  term = whole_number(1);
  for (std::uint64_t n = 2; !none(term.limbs); n += 2) {
    term = times(term, square, overflow);
    divide_by(term, (n - 1) * n);
    term.minus = !term.minus && !none(term.limbs);
    cosine = plus(cosine, term, overflow);
  }
  if (overflow) return std::nullopt;
  const double turns = std::log2(static_cast<double>(std::abs(*quarters)) + 1);
  const double error = larger({kSeriesError + turns, angle.error}) + 1;
  SineCosine result{.sine = {.middle = sine, .error = error},
                    .cosine = {.middle = cosine, .error = error}};
  for (auto turn = (*quarters % 4 + 4) % 4; turn > 0; --turn) {
    const Ball next = negated(result.sine);
    result.sine = result.cosine;
    result.cosine = next;
  }
  return result;
}

Ball floor_of(const Ball& value) {
  Ball result = value;
  const auto end = result.middle.limbs.begin() + kFractionLimbs;
  const bool broken =
      std::any_of(result.middle.limbs.begin(), end, [](std::uint64_t limb) { return limb != 0; });
  std::fill(result.middle.limbs.begin(), end, 0);
  if (!broken || !value.middle.minus) return result;
  bool overflow = false;
  FixedPoint one = whole_number(1);
  one.minus = true;
  result.middle = plus(result.middle, one, overflow);
  return result;
}

}  // namespace tandem::grade
