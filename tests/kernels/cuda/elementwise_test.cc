#include "kernels/ops/elementwise.h"

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using runtime::rows;
using runtime::tensor;

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

INSTANTIATE_TEST_SUITE_P(Types, CudaElementwise, testing::ValuesIn(kFloatTypes), dtype_name);

TEST(Elementwise, ACpuRefusesBf16) {
  std::uint16_t bits[4] = {};
  const TensorView y = tensor(static_cast<void*>(bits), DType::kBF16, {4});
  EXPECT_DEATH(scale(Stream{}, {.y = y, .factor = 2}), "computes");
}

}  // namespace
}  // namespace tandem::kernels
