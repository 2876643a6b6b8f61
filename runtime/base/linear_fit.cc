// With three terms the best fit without negative coefficients is the best of the unrestricted fits
// of all subsets of terms that have none (Lawson and Hanson, "Solving Least Squares Problems",
// chapter 23, which searches the subsets by steps; seven need no search).
#include "runtime/base/linear_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tandem {
namespace {

// Pivots below this share of a term's own square are rounding: the terms depend on each other.
constexpr double kDependent = 1e-9;
// A further term must explain so much more of y than those without it.
constexpr double kWorthATerm = 1e-9;

using Row = std::array<double, 4>;  // of the normal equations, right side last

std::array<Row, 3> equations(const FitSums& s) {
  return {
      {{s.count, s.x1, s.x2, s.y}, {s.x1, s.x1x1, s.x1x2, s.x1y}, {s.x2, s.x1x2, s.x2x2, s.x2y}}};
}

// The coefficients of these terms; false where the terms depend on each other.
bool solve(const std::array<Row, 3>& full, const std::vector<std::size_t>& terms,
           std::array<double, 3>& solution) {
  const std::size_t n = terms.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) a[i][j] = full[terms[i]][terms[j]];
    a[i][n] = full[terms[i]][3];
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i][i] <= kDependent * full[terms[i]][terms[i]]) return false;
    for (std::size_t k = i + 1; k < n; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (std::size_t j = i; j <= n; ++j) a[k][j] -= factor * a[i][j];
    }
  }
  solution = {};
  for (std::size_t i = n; i-- > 0;) {
    double value = a[i][n];
    for (std::size_t j = i + 1; j < n; ++j) value -= a[i][j] * solution[terms[j]];
    solution[terms[i]] = value / a[i][i];
  }
  return true;
}

}  // namespace

void FitSums::add(double sample_x1, double sample_x2, double sample_y) {
  *this += {.count = 1,
            .x1 = sample_x1,
            .x2 = sample_x2,
            .y = sample_y,
            .x1x1 = sample_x1 * sample_x1,
            .x1x2 = sample_x1 * sample_x2,
            .x2x2 = sample_x2 * sample_x2,
            .x1y = sample_x1 * sample_y,
            .x2y = sample_x2 * sample_y};
}

FitSums& FitSums::operator+=(const FitSums& other) {
  count += other.count, x1 += other.x1, x2 += other.x2, y += other.y;
  x1x1 += other.x1x1, x1x2 += other.x1x2, x2x2 += other.x2x2;
  x1y += other.x1y, x2y += other.x2y;
  return *this;
}

FitSums& FitSums::operator-=(const FitSums& other) {
  count -= other.count, x1 -= other.x1, x2 -= other.x2, y -= other.y;
  x1x1 -= other.x1x1, x1x2 -= other.x1x2, x2x2 -= other.x2x2;
  x1y -= other.x1y, x2y -= other.x2y;
  return *this;
}

bool FitSums::may_become(const FitSums& later) const {
  return later.count >= count && later.x1 >= x1 && later.x2 >= x2 && later.y >= y &&
         later.x1x1 >= x1x1 && later.x1x2 >= x1x2 && later.x2x2 >= x2x2 && later.x1y >= x1y &&
         later.x2y >= x2y;
}

std::array<double, 3> fit_nonnegative(const FitSums& sums) {
  std::array<double, 3> best{};
  if (sums.count < 1) return best;
  const std::array<Row, 3> full = equations(sums);
  // Of few terms first, in the order of the header.
  static const std::vector<std::size_t> kSubsets[] = {{1},    {0},    {2},      {0, 1},
                                                      {1, 2}, {0, 2}, {0, 1, 2}};
  double explained_most = 0;
  for (const std::vector<std::size_t>& terms : kSubsets) {
    std::array<double, 3> solution{};
    if (!solve(full, terms, solution)) continue;
    if (std::ranges::any_of(solution, [](double c) { return !(c >= 0) || !std::isfinite(c); }))
      continue;
    // The part of the sum of y² that an unrestricted fit of these terms explains.
    double explained = 0;
    for (const std::size_t term : terms) explained += solution[term] * full[term][3];
    if (explained <= explained_most * (1 + kWorthATerm)) continue;
    explained_most = explained;
    best = solution;
  }
  return best;
}

}  // namespace tandem
