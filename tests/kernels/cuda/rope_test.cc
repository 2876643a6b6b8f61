#include "kernels/ops/rope.h"

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::columns;
using device::tensor;

using CudaRope = CudaDTypeTest;

struct Shape {
  std::int64_t t, h, d;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{0, 2, 8}, {1, 1, 2}, {5, 3, 10}, {4, 2, 16}, {7, 1, 128}, {3, 5, 36}};
  if (!emulated()) all.push_back({4096, 16, 128});
  return all;
}

TEST_P(CudaRope, BothDirectionsGiveTheCpusBits) {
  const DType dtype = GetParam();
  const std::int64_t positions = 50;
  for (const auto [t, h, d] : shapes()) {
    SCOPED_TRACE(testing::Message() << t << " x " << h << " x " << d);
    // The heads are the middle of a fused buffer, on a pack's boundary and off it.
    for (const std::int64_t begin : {8, 3}) {
      Rng rng(static_cast<std::uint64_t>(t + d));
      const std::int64_t width = h * d + 16;
      const Floats fused = rounded(normals(rng, t * width), dtype);
      const std::vector<std::int32_t> at = ids_below(rng, t, positions);
      Floats cos = poison(positions * d / 2), sin = cos;
      fill_rope_table({.cos = tensor(cos.data(), {positions, d / 2}),
                       .sin = tensor(sin.data(), {positions, d / 2}),
                       .theta = 1e4});
      const Operand all(gpu(), dtype, {t, width}, fused), places(gpu(), {t}, at);
      const Operand cosines(gpu(), DType::kF32, {positions, d / 2}, cos);
      const Operand sines(gpu(), DType::kF32, {positions, d / 2}, sin);
      Floats expected = fused;
      for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
        rope(gpu(), {.x = split_heads(columns(all, begin, h * d), h),
                     .positions = places,
                     .cos = cosines,
                     .sin = sines,
                     .direction = direction});
        const TensorView cpu = tensor(expected.data(), {t, width});
        rope(Stream{}, {.x = split_heads(columns(cpu, begin, h * d), h),
                        .positions = tensor(at.data(), {t}),
                        .cos = tensor(cos.data(), {positions, d / 2}),
                        .sin = tensor(sin.data(), {positions, d / 2}),
                        .direction = direction});
        expected = rounded(expected, dtype);
        EXPECT_TRUE(same_bits(all.values(), expected)) << "from column " << begin;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaRope, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
