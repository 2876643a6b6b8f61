// Numbers with 192 binary digits before the point and 576 behind it, and functions of them. No
// number here allocates, throws or has a size that depends on its value, so that the time of an
// evaluation is known beforehand.
//
// Every result comes with a bound of its error: `Ball` is a number and how far the true value may
// be from it. A function returns none where the ball holds a value that the function is not defined
// for, or where the result could have more than 191 digits before the point.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "actors/grade/small_rational.h"

namespace tandem::grade {

inline constexpr int kFractionLimbs = 9;
inline constexpr int kLimbs = kFractionLimbs + 3;
inline constexpr int kFractionBits = 64 * kFractionLimbs;

struct FixedPoint {
  bool minus = false;                         // false for 0
  std::array<std::uint64_t, kLimbs> limbs{};  // the least significant first
  bool operator==(const FixedPoint&) const = default;
};

// An exact number has kExact as its error.
inline constexpr double kExact = -1e9;

struct Ball {
  FixedPoint middle;
  double error = kExact;  // the binary logarithm of a bound of the error
};
using MaybeBall = std::optional<Ball>;

Ball zero();
MaybeBall ball_of(Int128 value);
MaybeBall ball_of(const SmallRational& value);
MaybeBall ball_of_digits(const char* first, const char* last);  // digits, perhaps with a point
Ball pi();

// The exponent e of the smallest power 2^e that is above |middle|; kExact for 0.
double magnitude(const Ball& value);
double rough_value(const Ball& value);  // the middle as a double
// Whether the ball holds 0.
bool may_be_zero(const Ball& value);
bool is_zero(const Ball& value);   // exactly
bool is_whole(const Ball& value);  // exactly
// The whole number that the ball is, where it is one of at most 31 bits.
std::optional<int> whole_of(const Ball& value);

Ball negated(Ball value);
MaybeBall add(const Ball& a, const Ball& b);
MaybeBall multiply(const Ball& a, const Ball& b);
MaybeBall divide(const Ball& a, const Ball& b);
MaybeBall square_root(const Ball& value);  // of 0 and above
MaybeBall exponential(const Ball& value);
MaybeBall logarithm(const Ball& value);
MaybeBall arc_tangent(const Ball& value);
struct SineCosine {
  Ball sine, cosine;
};
std::optional<SineCosine> sine_cosine(const Ball& angle);
Ball floor_of(const Ball& value);  // of an exact value

}  // namespace tandem::grade
