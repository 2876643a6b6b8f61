// RMS norm on a GPU against the CPU, forward and backward; rows have the same bits in any batch and
// at any alignment.
#include "kernels/ops/rms_norm.h"

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::columns;
using device::DeviceKind;
using device::tensor;

constexpr float kEps = 1e-3f;

struct Shape {
  std::int64_t r, c;
};

// Around a pack, a warp's and a block's reach, one side and the other of kNormNarrowChannels, with
// channels that no pack divides; and backward with more shared memory than a block has unasked,
// twice, the second time with less.
std::vector<Shape> shapes() {
  std::vector<Shape> all = {{0, 8},   {1, 1},   {3, 5},     {4, 16},   {70, 33},   {33, 128},
                            {5, 256}, {5, 257}, {19, 1024}, {2, 1100}, {1, 13000}, {1, 12600}};
  if (!emulated()) all.insert(all.end(), {{4096, 1024}, {30000, 128}, {700, 8192}});
  return all;
}

using CudaRmsNorm = CudaDTypeTest;

TEST_P(CudaRmsNorm, ForwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const auto [r, c] : shapes()) {
    SCOPED_TRACE(testing::Message() << r << " x " << c);
    Rng rng(static_cast<std::uint64_t>(r + c));
    const Floats x = rounded(normals(rng, r * c), dtype), w = rounded(normals(rng, c), dtype);
    const Operand xs(gpu(), dtype, {r, c}, x), ws(gpu(), dtype, {c}, w);
    const Operand y = Operand::poisoned(gpu(), dtype, {r, c});
    const Operand inv = Operand::poisoned(gpu(), DType::kF32, {r});
    rms_norm(gpu(), {.x = xs, .weight = ws, .y = y, .inv_rms = inv, .eps = kEps});

    Floats y_cpu = poison(r * c), inv_cpu = poison(r);
    rms_norm(Stream{}, {.x = tensor(x.data(), {r, c}),
                        .weight = tensor(w.data(), {c}),
                        .y = tensor(y_cpu.data(), {r, c}),
                        .inv_rms = tensor(inv_cpu.data(), {r}),
                        .eps = kEps});
    expect_close(y.values(), y_cpu, dtype);
    expect_close(inv.values(), inv_cpu, DType::kF32);
    EXPECT_TRUE(same_bits(xs.values(), x));
  }
}

TEST_P(CudaRmsNorm, RowsDoNotDependOnTheirBatchOrAlignment) {
  const DType dtype = GetParam();
  for (const auto [r, c] : {Shape{37, 40}, Shape{5, 264}}) {
    Rng rng(7);
    const Floats x = normals(rng, r * c), w = normals(rng, c);
    const Operand xs(gpu(), dtype, {r, c}, x), ws(gpu(), dtype, {c}, w);
    const Operand all = Operand::poisoned(gpu(), dtype, {r, c});
    rms_norm(gpu(), {.x = xs, .weight = ws, .y = all, .eps = kEps});
    for (std::int64_t i = 0; i < r; i += 3) {
      // Alone, and one element off, so that rows are read element by element.
      Floats shifted(static_cast<std::size_t>(c + 1), 0.0f);
      std::copy_n(x.begin() + i * c, c, shifted.begin() + 1);
      const Operand odd(gpu(), dtype, {1, c + 1}, shifted);
      const Operand alone = Operand::poisoned(gpu(), dtype, {1, c});
      const TensorView row = columns(odd, 1, c);
      rms_norm(gpu(), {.x = row, .weight = ws, .y = alone, .eps = kEps});
      const Floats together = all.values();
      EXPECT_TRUE(same_bits(alone.values(), std::span(together).subspan(i * c, c))) << i;
    }
  }
}

TEST_P(CudaRmsNorm, AddUpdatesTheResidualFirst) {
  const DType dtype = GetParam();
  for (const auto [r, c] : {Shape{9, 24}, Shape{3, 515}}) {
    Rng rng(3);
    const Floats x = rounded(normals(rng, r * c), dtype), w = rounded(normals(rng, c), dtype);
    const Floats more = rounded(normals(rng, r * c), dtype);
    Floats sum = x;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    sum = rounded(sum, dtype);
    const Operand residual(gpu(), dtype, {r, c}, x), branch(gpu(), dtype, {r, c}, more);
    const Operand summed(gpu(), dtype, {r, c}, sum), ws(gpu(), dtype, {c}, w);
    const Operand y = Operand::poisoned(gpu(), dtype, {r, c});
    const Operand expected = Operand::poisoned(gpu(), dtype, {r, c});
    rms_norm(gpu(), {.x = residual, .weight = ws, .y = y, .eps = kEps, .add = branch});
    rms_norm(gpu(), {.x = summed, .weight = ws, .y = expected, .eps = kEps});
    EXPECT_TRUE(same_bits(residual.values(), sum));
    EXPECT_TRUE(same_bits(y.values(), expected.values()));
  }
}

TEST_P(CudaRmsNorm, HeadsOfAFusedBufferAreRows) {
  const DType dtype = GetParam();
  const std::int64_t t = 11, h = 3, d = 16, width = 80;
  Rng rng(4);
  const Floats fused = rounded(normals(rng, t * width), dtype), w = rounded(normals(rng, d), dtype);
  const Operand all(gpu(), dtype, {t, width}, fused), ws(gpu(), dtype, {d}, w);
  const Operand inv = Operand::poisoned(gpu(), DType::kF32, {t, h});
  const TensorView q = split_heads(columns(all, 8, h * d), h);
  rms_norm(gpu(), {.x = q, .weight = ws, .y = q, .inv_rms = inv, .eps = kEps});  // in place

  Floats expected = fused, inv_cpu = poison(t * h);
  const TensorView q_cpu = split_heads(columns(tensor(expected.data(), {t, width}), 8, h * d), h);
  rms_norm(Stream{}, {.x = q_cpu,
                      .weight = tensor(w.data(), {d}),
                      .y = q_cpu,
                      .inv_rms = tensor(inv_cpu.data(), {t, h}),
                      .eps = kEps});
  expect_close(all.values(), expected, dtype);
  expect_close(inv.values(), inv_cpu, DType::kF32);
}

TEST_P(CudaRmsNorm, BackwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const auto [r, c] : shapes()) {
    SCOPED_TRACE(testing::Message() << r << " x " << c);
    Rng rng(static_cast<std::uint64_t>(r * c + 1));
    const auto random = [&](std::int64_t n) { return rounded(normals(rng, n), dtype); };
    const Floats x = random(r * c), w = random(c), dy = random(r * c), dx = random(r * c);
    const Floats dw = normals(rng, c);
    Floats inv(static_cast<std::size_t>(r));
    for (float& value : inv) value = 0.5f + static_cast<float>(rng.unit());

    const Operand dys(gpu(), dtype, {r, c}, dy), xs(gpu(), dtype, {r, c}, x);
    const Operand ws(gpu(), dtype, {c}, w), invs(gpu(), DType::kF32, {r}, inv);
    const Operand dxs(gpu(), dtype, {r, c}, dx), dws(gpu(), DType::kF32, {c}, dw);
    const Operand space =
        Operand::poisoned(gpu(), DType::kF32, {rms_norm_workspace(DeviceKind::kCuda, r, c)});
    RmsNormBackward op{.dy = dys,
                       .x = xs,
                       .weight = ws,
                       .inv_rms = invs,
                       .dx = dxs,
                       .dweight = dws,
                       .workspace = space};
    rms_norm(gpu(), op);

    Floats dx_cpu = dx, dw_cpu = dw, space_cpu = poison(rms_norm_workspace(DeviceKind::kCpu, r, c));
    rms_norm(Stream{}, {.dy = tensor(dy.data(), {r, c}),
                        .x = tensor(x.data(), {r, c}),
                        .weight = tensor(w.data(), {c}),
                        .inv_rms = tensor(inv.data(), {r}),
                        .dx = tensor(dx_cpu.data(), {r, c}),
                        .dweight = tensor(dw_cpu.data(), {c}),
                        .workspace = tensor(space_cpu.data(), {std::ssize(space_cpu)})});
    expect_close(dxs.values(), dx_cpu, dtype);
    expect_close(dws.values(), dw_cpu, DType::kF32);

    // dx is written instead of added, over dy itself.
    op.dx = op.dy;
    op.output = Output::kWrite;
    rms_norm(gpu(), op);
    Floats written = dys.values();
    Floats difference(written.size());
    for (std::size_t i = 0; i < written.size(); ++i) difference[i] = dx_cpu[i] - dx[i];
    expect_close(written, difference, dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaRmsNorm, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
