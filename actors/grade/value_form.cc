// A value is cut to a fixed number of binary places to become text. Two evaluations of one value
// differ by their errors, and would be cut differently where an end of a cell lies between them.
// Values that people write, such as 1 or 0.375, would lie on such ends, so an odd number is added
// first: then an end lies between two values by chance alone, once in 2^32 at most.
#include "actors/grade/value_form.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "actors/grade/evaluate.h"
#include "actors/grade/normal_form.h"

namespace tandem::grade {
namespace {

constexpr std::size_t kValuePoints = 3, kRatioPoints = 3;
constexpr double kSpareErrorBits = 32;  // by which errors are smaller than a cell
constexpr int kRecognitionCost = 256;   // of the budget of evaluation; about 25 divisions
constexpr int kQuotientsMax = 40;
constexpr Int128 kRecognizedMax = static_cast<Int128>(1) << 31;  // above and below the line

bool exact_enough(const Ball& value) { return value.error <= -(kFormBits + kSpareErrorBits); }

// The rational number with small parts in the ball, by a continued fraction of nearest integers.
// The ball is so small that it holds at most one.
MaybeRational recognized(const Ball& value) {
  const Ball one = *ball_of(1);
  const MaybeBall half = ball_of(SmallRational{1, 2});
  Ball rest = value;
  Int128 above = 1, below = 0, above_before = 0, below_before = 1;
  for (int step = 0; step < kQuotientsMax; ++step) {
    const MaybeBall shifted = half ? add(rest, *half) : std::nullopt;
    if (!shifted) return std::nullopt;
    Ball nearest = floor_of(*shifted);
    nearest.error = kExact;
    const auto quotient = whole_of(nearest);
    if (!quotient) return std::nullopt;
    const Int128 next_above = *quotient * above + above_before;
    const Int128 next_below = *quotient * below + below_before;
    const auto small = [](Int128 n) { return n < kRecognizedMax && n > -kRecognizedMax; };
    if (!small(next_above) || !small(next_below)) return std::nullopt;
    above_before = std::exchange(above, next_above);
    below_before = std::exchange(below, next_below);
    const MaybeBall left = add(rest, negated(nearest));
    if (!left) return std::nullopt;
    if (may_be_zero(*left)) return make_rational(above, below);
    const MaybeBall next = divide(one, *left);
    if (!next) return std::nullopt;
    rest = *next;
  }
  return std::nullopt;
}

// The binary places of `value` up to kFormBits, in hexadecimal digits.
std::optional<std::string> cell_of(const Ball& value) {
  constexpr std::size_t kCut = kFractionLimbs - kFormBits / 64;
  Ball odd = zero();
  for (std::size_t i = 0; i < kCut; ++i) odd.middle.limbs[i] = 0x9e3779b97f4a7c15ULL;
  const MaybeBall moved = add(value, odd);
  if (!moved) return std::nullopt;
  std::string text = moved->middle.minus ? "-" : "";
  for (std::size_t i = kLimbs; i-- > kCut;) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), moved->middle.limbs[i], 16).ptr;
    text.append(digits.begin(), end).append(i == kCut ? "" : ".");
  }
  return text;
}

std::optional<std::string> real_form(const Ball& value, Budget& budget) {
  if (!exact_enough(value) || (budget.evaluation_left -= kRecognitionCost) < 0) return std::nullopt;
  if (const MaybeRational rational = recognized(value)) return text_of(*rational);
  // Cells around 0 would hold all tiny numbers.
  if (magnitude(value) < -kFormBits / 2) return std::nullopt;
  return cell_of(value);
}

std::optional<std::string> complex_form(const PointValue& value, Budget& budget) {
  auto re = real_form(value.re, budget);
  if (!re || is_zero(value.im)) return re;
  const auto im = real_form(value.im, budget);
  if (!im) return std::nullopt;
  return may_be_zero(value.im) ? re : *re + " i " + *im;
}

}  // namespace

std::string text_of(const SmallRational& value) {
  std::string digits;
  for (Int128 part : {value.below, value.above < 0 ? -value.above : value.above}) {
    if (!digits.empty()) digits += '/';
    do {
      digits += static_cast<char>('0' + static_cast<int>(part % 10));
      part /= 10;
    } while (part > 0);
  }
  return (value.above < 0 ? "-" : "") + std::string(digits.rbegin(), digits.rend());
}

std::optional<std::string> value_form(const Expr& expr, Budget& budget) {
  if (!has_value(expr) || --budget.comparisons_left < 0) return std::nullopt;
  if (const MaybeRational exact = rational_value(expr, budget.algebra)) return text_of(*exact);
  std::string form;
  for (const PointValue& value : values_at_known_points(expr, kValuePoints, kFormBits, budget)) {
    const auto text = complex_form(value, budget);
    if (!text) return std::nullopt;
    if (form == *text) continue;  // a constant, whatever names stand in it
    form += (form.empty() ? "" : " ") + *text;
  }
  return form.empty() ? std::nullopt : std::optional(form);
}

std::optional<RatioForm> ratio_form(const Expr& expr, Budget& budget) {
  if (!has_value(expr) || --budget.comparisons_left < 0) return std::nullopt;
  const auto values = values_at_known_points(expr, kRatioPoints, kFormBits, budget);
  if (values.empty() || may_be_zero(values[0].re)) return std::nullopt;
  RatioForm form{.text = "", .positive = !values[0].re.middle.minus};
  for (const PointValue& value : values) {
    const MaybeBall ratio = divide(value.re, values[0].re);
    const auto text = ratio && is_zero(value.im) ? real_form(*ratio, budget) : std::nullopt;
    if (!text) return std::nullopt;
    form.text += " " + *text;
  }
  return form;
}

}  // namespace tandem::grade
