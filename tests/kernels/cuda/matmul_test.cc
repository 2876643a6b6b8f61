// Products on a GPU against the CPU within the roundings of their sums; rows have the same bits in
// any batch (MM-2).
#include "kernels/ops/matmul.h"

#include <cmath>

#include "runtime/device/graph.h"
#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::rows;
using device::tensor;

struct Shape {
  std::int64_t m, k, n;
};

// Around a block's tile and steps, with sides that no pack divides (the plain kernel's on every
// GPU) and that a pack of 16 bytes divides (the library's); and nothing at all.
std::vector<Shape> shapes() {
  std::vector<Shape> all = {{0, 8, 8},   {5, 8, 0},    {5, 0, 8},    {1, 1, 1},    {3, 5, 7},
                            {1, 64, 64}, {65, 17, 66}, {70, 40, 24}, {16, 16, 136}};
  if (!emulated()) all.insert(all.end(), {{300, 1024, 512}, {1, 2048, 1024}, {1000, 511, 513}});
  return all;
}

Operand packed_panels(const Stream& stream, DType dtype, std::int64_t n, std::int64_t k) {
  return Operand::poisoned(stream, dtype, {packed_elements(dtype, n, k)});
}

using CudaMatmul = CudaDTypeTest;
using CudaMatmulF32 = CudaTest;

// The plain kernel promises the CPU's bits in f32 for outputs that are written and have at most
// kChainSteps terms, and for gradients of weights; so does what the emulator's library may use
// where rows may not depend on each other. Outputs that are added to are close to the CPU's, which
// adds whole chains (MM-1).
void expect_product(std::span<const float> actual, std::span<const float> expected, DType dtype) {
  if (emulated() && dtype == DType::kF32) {
    EXPECT_TRUE(same_bits(actual, expected));
  }
  expect_close(actual, expected, dtype);
}

// Before it is added to a bf16 output, the library rounds a product to bf16.
void expect_added(std::span<const float> actual, std::span<const float> expected,
                  std::span<const float> product, DType dtype) {
  if (dtype != DType::kBF16) return expect_close(actual, expected, dtype);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // A rounding moves a number by 2^-9 of it at most, and one that is nearly a tie by twice that.
    ASSERT_NEAR(actual[i], expected[i],
                std::ldexp(std::abs(expected[i]) + std::abs(product[i]), -8) + 1e-3)
        << "element " << i;
  }
}

TEST_P(CudaMatmul, ForwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const auto [m, k, n] : shapes()) {
    for (const std::uint64_t seed : {1, 2}) {
      SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n << " seed " << seed);
      Rng rng(seed);
      const Floats x = rounded(normals(rng, m * k), dtype), w = rounded(normals(rng, n * k), dtype);
      const Floats before = rounded(normals(rng, m * n), dtype);
      const Operand xs(gpu(), dtype, {m, k}, x), ws(gpu(), dtype, {n, k}, w);
      const Operand y = Operand::poisoned(gpu(), dtype, {m, n});
      const Operand by_packed = Operand::poisoned(gpu(), dtype, {m, n});
      const Operand added(gpu(), dtype, {m, n}, before);
      const Operand panels = packed_panels(gpu(), dtype, n, k);
      const PackedWeight packed = packed_weight(panels.view().data, dtype, n, k);
      matmul(gpu(), MatmulPlain{.x = xs, .weight = ws, .y = y});
      matmul(gpu(), MatmulPlain{.x = xs, .weight = ws, .y = added, .output = Output::kAdd});
      pack_weight(gpu(), {.weight = ws, .packed = packed});
      matmul(gpu(), Matmul{.x = xs, .weight = packed, .y = by_packed});

      Floats y_cpu = poison(m * n), added_cpu = before;
      MatmulPlain cpu{.x = tensor(x.data(), {m, k}),
                      .weight = tensor(w.data(), {n, k}),
                      .y = tensor(y_cpu.data(), {m, n})};
      matmul(Stream{}, cpu);
      cpu.y = tensor(added_cpu.data(), {m, n});
      cpu.output = Output::kAdd;
      matmul(Stream{}, cpu);
      expect_product(y.values(), y_cpu, dtype);
      expect_added(added.values(), added_cpu, y_cpu, dtype);
      EXPECT_TRUE(same_bits(by_packed.values(), y.values()));
    }
  }
}

TEST_P(CudaMatmul, BackwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const auto [m, k, n] : shapes()) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    Rng rng(3);
    const Floats dy = rounded(normals(rng, m * n), dtype), x = rounded(normals(rng, m * k), dtype);
    const Floats w = rounded(normals(rng, n * k), dtype), dw = normals(rng, n * k);
    const Operand dys(gpu(), dtype, {m, n}, dy), xs(gpu(), dtype, {m, k}, x);
    const Operand ws(gpu(), dtype, {n, k}, w), dws(gpu(), DType::kF32, {n, k}, dw);
    const Operand dx = Operand::poisoned(gpu(), dtype, {m, k});
    matmul(gpu(), MatmulBackwardInput{.dy = dys, .weight = ws, .dx = dx});
    matmul(gpu(), MatmulBackwardWeight{.dy = dys, .x = xs, .dweight = dws});

    Floats dx_cpu = poison(m * k), dw_cpu = dw;
    matmul(Stream{}, MatmulBackwardInput{.dy = tensor(dy.data(), {m, n}),
                                         .weight = tensor(w.data(), {n, k}),
                                         .dx = tensor(dx_cpu.data(), {m, k})});
    matmul(Stream{}, MatmulBackwardWeight{.dy = tensor(dy.data(), {m, n}),
                                          .x = tensor(x.data(), {m, k}),
                                          .dweight = tensor(dw_cpu.data(), {n, k})});
    expect_product(dx.values(), dx_cpu, dtype);
    expect_product(dws.values(), dw_cpu, DType::kF32);
  }
}

// Logits: bf16 operands, f32 sums that nothing rounds. They are written into dense rows, rows
// apart, and rows that begin off the alignment of the library.
TEST_F(CudaMatmulF32, OutputOfBf16OperandsIsNotRounded) {
  for (const auto [m, k, n] : shapes()) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    Rng rng(6);
    const Floats x = rounded(normals(rng, m * k), DType::kBF16);
    const Floats w = rounded(normals(rng, n * k), DType::kBF16), before = normals(rng, m * n);
    const Operand xs(gpu(), DType::kBF16, {m, k}, x), ws(gpu(), DType::kBF16, {n, k}, w);
    const Operand panels = packed_panels(gpu(), DType::kBF16, n, k);
    const PackedWeight packed = packed_weight(panels.view().data, DType::kBF16, n, k);
    const Operand y = Operand::poisoned(gpu(), DType::kF32, {m, n});
    const Operand by_packed = Operand::poisoned(gpu(), DType::kF32, {m, n});
    const Operand odd = Operand::poisoned(gpu(), DType::kF32, {m, n + 3});
    const Operand added(gpu(), DType::kF32, {m, n}, before);
    matmul(gpu(), MatmulPlain{.x = xs, .weight = ws, .y = y});
    matmul(gpu(), MatmulPlain{.x = xs, .weight = ws, .y = device::columns(odd, 1, n)});
    pack_weight(gpu(), {.weight = ws, .packed = packed});
    matmul(gpu(), Matmul{.x = xs, .weight = packed, .y = by_packed});
    matmul(gpu(), Matmul{.x = xs, .weight = packed, .y = added, .output = Output::kAdd});

    Floats y_cpu = poison(m * n), added_cpu = before;
    MatmulPlain cpu{.x = tensor(x.data(), {m, k}),
                    .weight = tensor(w.data(), {n, k}),
                    .y = tensor(y_cpu.data(), {m, n})};
    matmul(Stream{}, cpu);
    cpu.y = tensor(added_cpu.data(), {m, n});
    cpu.output = Output::kAdd;
    matmul(Stream{}, cpu);
    expect_product(y.values(), y_cpu, DType::kF32);
    expect_close(added.values(), added_cpu, DType::kF32);
    EXPECT_TRUE(same_bits(by_packed.values(), y.values()));
    Floats inside;
    const Floats apart = odd.values();
    for (std::int64_t r = 0; r < m; ++r) {
      const auto row = apart.begin() + r * (n + 3) + 1;
      inside.insert(inside.end(), row, row + n);
    }
    expect_product(inside, y_cpu, DType::kF32);
  }
}

TEST_F(CudaMatmulF32, OperandsOfItCannotHaveABf16Output) {
  const Operand x = Operand::poisoned(gpu(), DType::kF32, {2, 2});
  const Operand y = Operand::poisoned(gpu(), DType::kBF16, {2, 2});
  EXPECT_DEATH(matmul(gpu(), MatmulPlain{.x = x, .weight = x, .y = y}), "is_product");
}

TEST_P(CudaMatmul, Mm2RowsDoNotDependOnTheirBatch) {  // MM-2
  const DType dtype = GetParam();
  std::vector<Shape> all = {{70, 24, 40}, {9, 15, 33}};
  if (!emulated()) {
    all.insert(all.end(), {{700, 1024, 4096}, {513, 3072, 1024}, {5000, 1024, 1024}});
  }
  for (const auto [m, k, n] : all) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    Rng rng(4);
    const Operand x(gpu(), dtype, {m, k}, normals(rng, m * k));
    const Operand w(gpu(), dtype, {n, k}, normals(rng, n * k));
    const Operand y = Operand::poisoned(gpu(), dtype, {m, n});
    const Operand part = Operand::poisoned(gpu(), dtype, {m, n});
    matmul(gpu(), MatmulPlain{.x = x, .weight = w, .y = y});
    const Floats together = y.values();
    for (const std::int64_t count : {1L, 2L, 15L, 17L, 63L, 65L, 255L, 257L, 1025L, m / 3, m - 1}) {
      if (count >= m) continue;
      // The rows are those at the front, where a row is aligned whatever its length.
      matmul(gpu(), MatmulPlain{.x = rows(x, 0, count), .weight = w, .y = rows(part, 0, count)});
      const Floats alone = part.values();
      EXPECT_TRUE(
          same_bits(std::span(alone).first(count * n), std::span(together).first(count * n)))
          << count;
    }
  }
}

// The same product with operands one element off, which the library does not take: on a GPU this
// holds it to the plain kernel in shapes that are too large for the CPU.
TEST_P(CudaMatmul, StridedOperandsGiveTheSameProduct) {
  const DType dtype = GetParam();
  std::vector<Shape> all = {{9, 32, 24}};
  if (!emulated()) all.push_back({2048, 4096, 4096});
  for (const auto [m, k, n] : all) {
    Rng rng(5);
    const Operand wide(gpu(), dtype, {m, k + 3}, normals(rng, m * (k + 3)));
    const TensorView strided = device::columns(wide, 1, k);
    const Operand w(gpu(), dtype, {n, k}, normals(rng, n * k));
    const Operand out(gpu(), dtype, {m, n + 2},
                      Floats(static_cast<std::size_t>(m * (n + 2)), 7.0f));
    matmul(gpu(), MatmulPlain{.x = strided, .weight = w, .y = device::columns(out, 1, n)});

    const Floats values = wide.values(), result = out.values();
    Floats dense, inside;
    for (std::int64_t r = 0; r < m; ++r) {
      dense.insert(dense.end(), values.begin() + r * (k + 3) + 1,
                   values.begin() + r * (k + 3) + 1 + k);
      const auto row = result.begin() + r * (n + 2);
      inside.insert(inside.end(), row + 1, row + 1 + n);
      EXPECT_EQ(row[0], 7.0f);
      EXPECT_EQ(row[n + 1], 7.0f);
    }
    const Operand xs(gpu(), dtype, {m, k}, dense);
    // This result is not rounded: of two rounded ones, one may be rounded up and the other down.
    const Operand y = Operand::poisoned(gpu(), DType::kF32, {m, n});
    matmul(gpu(), MatmulPlain{.x = xs, .weight = w, .y = y});
    expect_close(inside, y.values(), dtype);
    if (emulated()) {
      EXPECT_TRUE(same_bits(inside, rounded(y.values(), dtype)));
    }
  }
}

// The plan that the library made for a shape also serves the recording, which may make nothing.
TEST_P(CudaMatmul, AProductThatRanBeforeCanBeRecorded) {
  const DType dtype = GetParam();
  for (const auto [m, k, n] : {Shape{9, 32, 24}, Shape{5, 7, 3}}) {
    Rng rng(7);
    const Operand x(gpu(), dtype, {m, k}, normals(rng, m * k));
    const Operand other(gpu(), dtype, {m, k}, normals(rng, m * k));
    const Operand w(gpu(), dtype, {n, k}, normals(rng, n * k));
    const Operand y = Operand::poisoned(gpu(), dtype, {m, n});
    const Operand expected = Operand::poisoned(gpu(), dtype, {m, n});
    const MatmulPlain op{.x = x, .weight = w, .y = y};
    matmul(gpu(), op);
    matmul(gpu(), MatmulPlain{.x = other, .weight = w, .y = expected});
    const auto graph = device::Graph::capture(gpu(), [&] { matmul(gpu(), op); });
    const auto bytes = static_cast<std::size_t>(m * k) * device::size_bytes(dtype);
    device::copy(gpu(), x.view().data, other.view().data, bytes);
    graph.launch(gpu());
    EXPECT_TRUE(same_bits(y.values(), expected.values()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaMatmul, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
