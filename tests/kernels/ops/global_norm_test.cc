#include "kernels/ops/global_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

TEST(GlobalNorm, IsTheSumOfSquares) {
  for (const std::int64_t n : {0, 1, 9, 4096, 30001}) {
    Rng rng(4);
    const Floats x = normals(rng, n);
    const Floats sums = same_everywhere([&](const Backend& backend, const Stream& stream) {
      std::vector<double> space(static_cast<std::size_t>(sum_of_squares_workspace(n)), NAN);
      double sum = 1;
      backend.sum_of_squares(stream, {.x = tensor(x.data(), {n}), .workspace = space, .sum = &sum});
      EXPECT_NEAR(sum, 1 + dot(x, x), 1e-9 * (1 + sum));
      // Both halves of the double, so that its bits are compared.
      const float high = static_cast<float>(sum);
      return Floats{high, static_cast<float>(sum - static_cast<double>(high))};
    });
    EXPECT_FALSE(has_nan(sums));
  }
}

}  // namespace
}  // namespace tandem::kernels
