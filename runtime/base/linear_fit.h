// A least-squares fit of y = c0 + c1·x1 + c2·x2 in which no coefficient is negative, from sums that
// grow as the samples come: the samples themselves are not kept. Sums of several sources, and
// differences of the sums of one, are sums again. Plain values; pure.
#pragma once

#include <array>

namespace tandem {

struct FitSums {
  double count = 0, x1 = 0, x2 = 0, y = 0;
  double x1x1 = 0, x1x2 = 0, x2x2 = 0, x1y = 0, x2y = 0;

  void add(double sample_x1, double sample_x2, double sample_y);
  FitSums& operator+=(const FitSums& other);
  FitSums& operator-=(const FitSums& other);
  bool operator==(const FitSums&) const = default;
  // Whether `later` can be these sums after further samples: none of them is smaller.
  bool may_become(const FitSums& later) const;
};

// {c0, c1, c2} with the least sum of squares among those without a negative one. Zeros where there
// are no samples. Samples that are all alike leave the split between the terms open: then the
// smaller number of terms explains them, c1 before c0 before c2.
std::array<double, 3> fit_nonnegative(const FitSums& sums);

}  // namespace tandem
