#include "runtime/base/linear_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/rng.h"

namespace tandem {
namespace {

FitSums samples_of(double c0, double c1, double c2, double noise, Rng& rng, int count = 400) {
  FitSums sums;
  for (int i = 0; i < count; ++i) {
    const double x1 = static_cast<double>(1 + rng.below(256));
    const double x2 = rng.below(4) == 0 ? static_cast<double>(rng.below(500)) : 0;
    sums.add(x1, x2, (c0 + c1 * x1 + c2 * x2) * (1 + noise * (rng.unit() - 0.5)));
  }
  return sums;
}

TEST(LinearFit, FindsTheCoefficientsOfSamplesWithNoise) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const double c0 = 1e-3 * rng.unit() + 1e-4, c1 = 1e-4 * rng.unit() + 1e-5, c2 = 1e-5;
    const auto fit = fit_nonnegative(samples_of(c0, c1, c2, 0.1, rng));
    EXPECT_NEAR(fit[0], c0, 0.1 * (c0 + 100 * c1));
    EXPECT_NEAR(fit[1], c1, 0.1 * c1 + 1e-6);
    EXPECT_NEAR(fit[2], c2, 0.5 * c2 + 5e-6);
  }
}

TEST(LinearFit, NoCoefficientIsNegative) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    FitSums sums;
    for (int i = 0; i < 20; ++i) sums.add(rng.unit() * 10, rng.unit(), rng.unit());
    for (const double c : fit_nonnegative(sums)) EXPECT_GE(c, 0);
  }
}

TEST(LinearFit, SamplesThatAreAlikeAreExplainedByOneTerm) {
  FitSums sums;
  for (int i = 0; i < 10; ++i) sums.add(32, 0, 0.008);
  const auto fit = fit_nonnegative(sums);
  EXPECT_NEAR(fit[1], 0.008 / 32, 1e-12);
  EXPECT_EQ(fit[0], 0);
  EXPECT_EQ(fit[2], 0);
  EXPECT_EQ(fit_nonnegative({}), (std::array<double, 3>{}));
}

TEST(LinearFit, SumsThatShrinkAreNotThoseOfFurtherSamples) {
  FitSums before, later;
  before.add(3, 1, 0.5);
  later = before;
  EXPECT_TRUE(before.may_become(later));
  later.add(0, 0, 0);
  EXPECT_TRUE(before.may_become(later));
  EXPECT_FALSE(later.may_become(before));
  later.y = std::nan("");
  EXPECT_FALSE(before.may_become(later));
}

TEST(LinearFit, SumsOfTwoSourcesAndDifferencesOfOneAreSums) {
  Rng rng(7);
  FitSums first = samples_of(1, 2, 3, 0, rng), second = samples_of(1, 2, 3, 0, rng);
  FitSums both = first;
  both += second;
  both -= first;
  EXPECT_NEAR(fit_nonnegative(both)[1], 2, 1e-6);
  EXPECT_NEAR(fit_nonnegative(both)[2], 3, 1e-6);
}

}  // namespace
}  // namespace tandem
