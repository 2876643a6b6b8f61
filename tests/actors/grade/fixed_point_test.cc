// Known digits, identities at random points, and that the true value lies within the error.
#include "actors/grade/fixed_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string_view>

#include "tests/seeds.h"

namespace tandem::grade {
namespace {

Ball from(std::string_view digits) {
  return *ball_of_digits(digits.data(), digits.data() + digits.size());
}

// Both agree within their errors, which leave at least `bits` digits after the point.
void expect_same(const Ball& a, const Ball& b, double bits = 500) {
  const Ball rest = *add(a, negated(b));
  EXPECT_TRUE(may_be_zero(rest)) << rough_value(a) << " and " << rough_value(b);
  EXPECT_LT(rest.error, -bits);
}

// 150 digits of constants, from tables.
TEST(FixedPoint, KnowsConstants) {
  expect_same(pi(),
              *add(from("3.14159265358979323846264338327950288419716939937510582097494459230781"
                        "640628620899862803482534211706798214808651328230664709384460955058"),
                   Ball{.middle = {}, .error = -420}),
              400);
  expect_same(*exponential(*ball_of(1)),
              *add(from("2.71828182845904523536028747135266249775724709369995957496696762772407"
                        "663035354759457138217852516642742746639193200305992181741359662904"),
                   Ball{.middle = {}, .error = -420}),
              400);
  expect_same(*logarithm(*ball_of(2)),
              *add(from("0.69314718055994530941723212145817656807550013436025525412068000949339"
                        "362196969471560586332699641868754200148102057068573368552023575813"),
                   Ball{.middle = {}, .error = -420}),
              400);
}

TEST(FixedPoint, IdentitiesHoldWithinTheErrors) {
  for_seeds(60, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::int64_t range) {
      const auto above = static_cast<std::int64_t>(random() % 1'000'000'000);
      const std::int64_t below = 1'000'000'000 / range;
      return *ball_of(*make_rational(random() % 2 == 0 ? above : -above, below + 1));
    };
    const Ball x = draw(3), y = draw(20), one = *ball_of(1);
    const Ball positive = *add(*multiply(x, x), one);
    expect_same(*multiply(*divide(x, positive), positive), x);
    const Ball root = *square_root(positive);
    expect_same(*multiply(root, root), positive);
    expect_same(*exponential(*logarithm(positive)), positive);
    expect_same(*logarithm(*exponential(x)), x);
    const SineCosine turn = *sine_cosine(y);
    expect_same(*add(*multiply(turn.sine, turn.sine), *multiply(turn.cosine, turn.cosine)), one);
    const SineCosine twice = *sine_cosine(*add(y, y));
    expect_same(twice.sine, *multiply(*ball_of(2), *multiply(turn.sine, turn.cosine)));
    const SineCosine angle = *sine_cosine(*arc_tangent(x));
    expect_same(*divide(angle.sine, angle.cosine), x);
    // and agree with the C library's
    EXPECT_NEAR(rough_value(turn.sine), std::sin(rough_value(y)), 1e-12);
    EXPECT_NEAR(rough_value(*exponential(x)), std::exp(rough_value(x)), 1e-12);
    EXPECT_NEAR(rough_value(*arc_tangent(x)), std::atan(rough_value(x)), 1e-12);
    EXPECT_NEAR(rough_value(*logarithm(positive)), std::log(rough_value(positive)), 1e-12);
  });
}

TEST(FixedPoint, WholeNumbersAreExact) {
  Ball product = *ball_of(1);
  for (int i = 1; i <= 40; ++i) product = *multiply(product, *ball_of(i));
  EXPECT_TRUE(is_whole(product));
  expect_same(product, from("815915283247897734345611269596115894272000000000"));
  EXPECT_EQ(whole_of(*ball_of(-17)), -17);
  EXPECT_FALSE(whole_of(*divide(*ball_of(1), *ball_of(3))));
  EXPECT_EQ(whole_of(floor_of(from("2.75"))), 2);
  EXPECT_EQ(whole_of(floor_of(negated(from("2.75")))), -3);
}

TEST(FixedPoint, WhatIsNotDefinedOrTooLargeIsNone) {
  EXPECT_FALSE(divide(*ball_of(1), zero()));
  EXPECT_FALSE(logarithm(zero()));
  EXPECT_FALSE(logarithm(*ball_of(-1)));
  EXPECT_FALSE(square_root(*ball_of(-1)));
  EXPECT_FALSE(exponential(*ball_of(1000)));
  const Ball large = *exponential(*ball_of(100));
  EXPECT_FALSE(multiply(large, large));
  // A ball that holds 0 cannot be divided by.
  EXPECT_FALSE(divide(*ball_of(1), sine_cosine(pi())->sine));
}

}  // namespace
}  // namespace tandem::grade
