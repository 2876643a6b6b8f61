#include "kernels/ops/adamw.h"

#include <cmath>

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using runtime::rows;
using runtime::tensor;

using CudaAdamW = CudaTest;

// Elementwise in one order of operations: equal, and the bf16 copy is the master's rounding.
TEST_F(CudaAdamW, GivesTheCpusBitsAndACopyInBf16) {
  for (const std::int64_t n : {0, 1, 3, 4, 1000, 2057}) {
    for (const std::int64_t offset : {0, 1}) {  // off the alignment of a pack
      Rng rng(static_cast<std::uint64_t>(n));
      Floats p = normals(rng, n + offset), m = normals(rng, n + offset, 0.1f);
      const Floats g = normals(rng, n + offset);
      Floats v = normals(rng, n + offset, 0.1f);
      for (float& value : v) value *= value;
      const Operand ps(gpu(), DType::kF32, {n + offset}, p);
      const Operand gs(gpu(), DType::kF32, {n + offset}, g);
      const Operand ms(gpu(), DType::kF32, {n + offset}, m);
      const Operand vs(gpu(), DType::kF32, {n + offset}, v);
      const Operand copy = Operand::poisoned(gpu(), DType::kBF16, {n});
      const auto part = [&](const Floats& values) {
        return rows(tensor(values.data(), {n + offset}), offset, n);
      };
      for (const double lr : {1e-3, 0.0}) {  // 0 leaves the parameters alone
        AdamW op{.parameters = rows(ps, offset, n),
                 .gradients = rows(gs, offset, n),
                 .m = rows(ms, offset, n),
                 .v = rows(vs, offset, n),
                 .step = 7,
                 .lr = lr,
                 .weight_decay = 0.1,
                 .grad_scale = 0.3f,
                 .rounded = copy};
        adamw(gpu(), op);
        op.parameters = part(p);
        op.gradients = part(g);
        op.m = part(m);
        op.v = part(v);
        op.rounded = {};
        adamw(Stream{}, op);
        EXPECT_TRUE(same_bits(ps.values(), p)) << n << " lr " << lr;
        EXPECT_TRUE(same_bits(ms.values(), m));
        EXPECT_TRUE(same_bits(vs.values(), v));
        const Floats nearest = rounded(p, DType::kBF16);
        EXPECT_TRUE(same_bits(copy.values(), std::span(nearest).subspan(offset, n)));
      }
    }
  }
}

TEST_F(CudaAdamW, TheCopyMayBeLeftOut) {
  const Operand p(gpu(), DType::kF32, {2}, Floats{1, 2}), g(gpu(), DType::kF32, {2}, Floats{1, -1});
  const Operand m(gpu(), DType::kF32, {2}, Floats{0, 0}), v(gpu(), DType::kF32, {2}, Floats{0, 0});
  adamw(gpu(), {.parameters = p, .gradients = g, .m = m, .v = v, .step = 1, .lr = 0.5});
  EXPECT_NEAR(p.values()[0], 0.5f, 1e-5);
  EXPECT_NEAR(p.values()[1], 2.5f, 1e-5);
}

}  // namespace
}  // namespace tandem::kernels
