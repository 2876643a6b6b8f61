#include "kernels/ops/global_norm.h"

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::rows;
using device::tensor;

using CudaGlobalNorm = CudaTest;

// The CPU's lanes, blocks and order: the same double.
TEST_F(CudaGlobalNorm, GivesTheCpusBits) {
  std::vector<std::int64_t> sizes = {0, 1, 7, 8, 4095, 4096, 4097, 4096 * 3 + 5, 4096 * 40 + 17};
  if (!emulated()) sizes.push_back(100'000'007);
  for (const std::int64_t n : sizes) {
    Rng rng(static_cast<std::uint64_t>(n));
    const Floats x = normals(rng, n + 1);
    const Operand xs(gpu(), DType::kF32, {n + 1}, x);
    const std::vector<double> space(static_cast<std::size_t>(sum_of_squares_workspace(n)), -1.0);
    const OnGpu<double> workspace(gpu(), space), sum(gpu(), std::vector<double>{0.25});
    sum_of_squares(gpu(),
                   {.x = rows(xs, 1, n), .workspace = workspace.span(), .sum = sum.span().data()});
    std::vector<double> workspace_cpu = space;
    double expected = 0.25;
    sum_of_squares(
        Stream{},
        {.x = rows(tensor(x.data(), {n + 1}), 1, n), .workspace = workspace_cpu, .sum = &expected});
    EXPECT_EQ(sum.values()[0], expected) << n;
  }
}

}  // namespace
}  // namespace tandem::kernels
