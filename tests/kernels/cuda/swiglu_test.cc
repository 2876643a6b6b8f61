#include "kernels/ops/swiglu.h"

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::columns;
using device::tensor;

using CudaSwiglu = CudaDTypeTest;

struct Shape {
  std::int64_t t, f;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{0, 8}, {1, 1}, {3, 5}, {7, 8}, {5, 64}, {11, 100}, {2, 1037}};
  if (!emulated()) all.insert(all.end(), {{4096, 3072}, {300, 9728}});
  return all;
}

// Operand by operand the CPU's operations in its order: equal, not only close. Gates reach to where
// exp is 0 and where it is at its largest.
TEST_P(CudaSwiglu, ForwardGivesTheCpusBits) {
  const DType dtype = GetParam();
  for (const auto [t, f] : shapes()) {
    Rng rng(static_cast<std::uint64_t>(t + f));
    const Floats x = rounded(normals(rng, t * 2 * f, 30), dtype);
    const Operand xs(gpu(), dtype, {t, 2 * f}, x);
    const Operand y = Operand::poisoned(gpu(), dtype, {t, f});
    swiglu(gpu(), Swiglu{.x = xs, .y = y});
    Floats expected = poison(t * f);
    swiglu(Stream{},
           Swiglu{.x = tensor(x.data(), {t, 2 * f}), .y = tensor(expected.data(), {t, f})});
    EXPECT_TRUE(same_bits(y.values(), rounded(expected, dtype))) << t << " x " << f;
  }
}

TEST_P(CudaSwiglu, BackwardGivesTheCpusBitsAndMayWriteOverItsInput) {
  const DType dtype = GetParam();
  for (const auto [t, f] : shapes()) {
    Rng rng(static_cast<std::uint64_t>(t * f + 1));
    const Floats x = rounded(normals(rng, t * 2 * f, 3), dtype);
    const Floats dy = rounded(normals(rng, t * f), dtype);
    const Operand xs(gpu(), dtype, {t, 2 * f}, x), dys(gpu(), dtype, {t, f}, dy);
    const Operand dx = Operand::poisoned(gpu(), dtype, {t, 2 * f});
    swiglu(gpu(), SwigluBackward{.dy = dys, .x = xs, .dx = dx});
    EXPECT_TRUE(same_bits(xs.values(), x));
    swiglu(gpu(), SwigluBackward{.dy = dys, .x = xs, .dx = xs});
    Floats expected = poison(t * 2 * f);
    swiglu(Stream{}, SwigluBackward{.dy = tensor(dy.data(), {t, f}),
                                    .x = tensor(x.data(), {t, 2 * f}),
                                    .dx = tensor(expected.data(), {t, 2 * f})});
    EXPECT_TRUE(same_bits(dx.values(), rounded(expected, dtype))) << t << " x " << f;
    EXPECT_TRUE(same_bits(dx.values(), xs.values()));
  }
}

TEST_P(CudaSwiglu, RowsMayLieApartAndOffAPack) {
  const DType dtype = GetParam();
  const std::int64_t t = 5, f = 16;
  Rng rng(2);
  const Floats wide = rounded(normals(rng, t * (2 * f + 3)), dtype);
  const Operand all(gpu(), dtype, {t, 2 * f + 3}, wide);
  const Operand y = Operand::poisoned(gpu(), dtype, {t, f});
  swiglu(gpu(), Swiglu{.x = columns(all, 1, 2 * f), .y = y});
  Floats expected = poison(t * f);
  swiglu(Stream{}, Swiglu{.x = columns(tensor(wide.data(), {t, 2 * f + 3}), 1, 2 * f),
                          .y = tensor(expected.data(), {t, f})});
  EXPECT_TRUE(same_bits(y.values(), rounded(expected, dtype)));
}

INSTANTIATE_TEST_SUITE_P(Types, CudaSwiglu, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
