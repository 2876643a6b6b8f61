#include "kernels/ops/elementwise.h"

#include <cmath>

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::rows;
using device::tensor;

using CudaElementwise = CudaDTypeTest;

// One rounding after an exact sum or product: not close but equal.
TEST_P(CudaElementwise, AddAndScaleGiveTheCpusBits) {
  const DType dtype = GetParam();
  for (const std::int64_t n : {0, 1, 7, 16, 17, 1000, 70001}) {
    for (const std::int64_t offset : {0, 1}) {  // off the alignment of a pack
      Rng rng(static_cast<std::uint64_t>(n));
      const Floats x = rounded(normals(rng, n + offset), dtype);
      const Floats before = rounded(normals(rng, n + offset), dtype);
      const Operand xs(gpu(), dtype, {n + offset}, x), ys(gpu(), dtype, {n + offset}, before);
      const TensorView y = rows(ys, offset, n);
      add(gpu(), {.x = rows(xs, offset, n), .y = y});
      scale(gpu(), {.y = y, .factor = 0.3f});

      Floats sum = before;
      add(Stream{}, {.x = rows(tensor(x.data(), {n + offset}), offset, n),
                     .y = rows(tensor(sum.data(), {n + offset}), offset, n)});
      Floats expected = rounded(sum, dtype);
      scale(Stream{},
            {.y = rows(tensor(expected.data(), {n + offset}), offset, n), .factor = 0.3f});
      EXPECT_TRUE(same_bits(ys.values(), rounded(expected, dtype))) << n << " from " << offset;
    }
  }
}

// Converts from the parameter's dtype to each; the values are the CPU's, on packs and off their
// alignment.
TEST_P(CudaElementwise, ConvertGivesTheCpusValues) {
  const DType from = GetParam();
  for (const DType to : kFloatTypes) {
    for (const std::int64_t n : {0, 1, 3, 4, 7, 1025, 5000}) {
      for (const std::int64_t offset : {0, 1}) {
        SCOPED_TRACE(testing::Message() << n << " from " << offset << " to " << name(to));
        Rng rng(static_cast<std::uint64_t>(n));
        Floats x = rounded(normals(rng, n + offset), from);
        if (n > 4) x[2] = INFINITY, x[3] = -0.0f;
        const Operand xs(gpu(), from, {n + offset}, x);
        const Operand ys(gpu(), to, {n + offset}, Floats(x.size(), 7.0f));
        convert(gpu(), {.x = rows(xs, offset, n), .y = rows(ys, offset, n)});
        Floats expected = rounded(x, to);
        if (offset == 1) expected[0] = 7;  // nothing before the range is touched
        EXPECT_TRUE(same_bits(ys.values(), expected));
      }
    }
  }
}

TEST_P(CudaElementwise, ConvertKeepsNaN) {
  for (const DType to : kFloatTypes) {
    const Operand xs(gpu(), GetParam(), {6}, Floats{1, NAN, 2, -NAN, 3, NAN});
    const Operand ys(gpu(), to, {6}, Floats(6, 7.0f));
    convert(gpu(), {.x = xs, .y = ys});
    const Floats values = ys.values();
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i % 2 == 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaElementwise, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
