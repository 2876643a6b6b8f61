// AdamW on a GPU gives the CPU's bits, and a list of the copies in bf16 that changed.
#include "kernels/ops/adamw.h"

#include <algorithm>
#include <cmath>

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::rows;
using device::tensor;

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

// A range of n values in the GPU's memory, `offset` elements into its blocks, whose bf16 copies are
// those of the parameters.
struct Range {
  Range(const Stream& gpu, std::int64_t n, std::int64_t offset, Rng rng)
      : parameters(normals(rng, n + offset)),
        p(gpu, DType::kF32, {n + offset}, parameters),
        g(gpu, DType::kF32, {n + offset}, normals(rng, n + offset)),
        m(gpu, DType::kF32, {n + offset}, Floats(parameters.size(), 0.0f)),
        v(gpu, DType::kF32, {n + offset}, Floats(parameters.size(), 0.0f)),
        copy(gpu, DType::kBF16, {n + offset}, parameters),
        changed(Operand::poisoned(gpu, DType::kI32, {n})),
        count(Operand::poisoned(gpu, DType::kI32, {1})),
        workspace(Operand::poisoned(gpu, DType::kI32, {adamw_workspace(n)})),
        op{.parameters = rows(p, offset, n),
           .gradients = rows(g, offset, n),
           .m = rows(m, offset, n),
           .v = rows(v, offset, n),
           .step = 1,
           .rounded = rows(copy, offset, n),
           .changed = changed,
           .changed_count = count,
           .workspace = workspace} {}

  Floats parameters;
  Operand p, g, m, v, copy, changed, count, workspace;
  AdamW op;
};

// The list is what the host finds by comparing the copies, and nothing beyond it is written.
void expect_changes(const Stream& gpu, const Range& range, std::int64_t offset) {
  const Floats before = range.copy.values();
  const std::vector<std::int32_t> untouched = range.changed.integers();
  adamw(gpu, range.op);
  const Floats after = range.copy.values();
  EXPECT_TRUE(same_bits(after, rounded(range.p.values(), DType::kBF16)));
  std::vector<std::int32_t> expected;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (same_bits({&before[i], 1}, {&after[i], 1})) continue;
    expected.push_back(static_cast<std::int32_t>(i) - static_cast<std::int32_t>(offset));
  }
  ASSERT_EQ(range.count.integers()[0], std::ssize(expected));
  std::vector<std::int32_t> all = untouched;
  std::copy(expected.begin(), expected.end(), all.begin());
  EXPECT_EQ(range.changed.integers(), all);
}

// Words and blocks of flags that end within, at and just beyond the range.
TEST_F(CudaAdamW, ListsTheCopiesThatChanged) {
  for (const std::int64_t n :
       std::initializer_list<std::int64_t>{0, 1, 3, 31, 32, 33, 1001, 1024, 8191,
                                           kChangesPerBlock + 1, 3 * kChangesPerBlock + 77}) {
    for (const std::int64_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << n << " from " << offset);
      Range range(gpu(), n, offset, Rng(static_cast<std::uint64_t>(n)));
      range.op.lr = 0;
      expect_changes(gpu(), range, offset);
      EXPECT_EQ(range.count.integers()[0], 0);
      range.op.lr = 1e-3;  // about half the steps are a unit of a bf16 value near 1
      range.op.step = 2;
      expect_changes(gpu(), range, offset);
      if (n > 1000) {
        EXPECT_GT(range.count.integers()[0], n / 10);
        EXPECT_LT(range.count.integers()[0], n - n / 10);
      }
      range.op.lr = 1;
      range.op.step = 3;
      expect_changes(gpu(), range, offset);
      EXPECT_EQ(range.count.integers()[0], n);
    }
  }
}

// More blocks than the one that adds their counts up has threads.
TEST_F(CudaAdamW, ListsTheChangesOfALongRange) {
  Range range(gpu(), 257 * kChangesPerBlock + 5, 0, Rng(9));
  range.op.lr = 1e-3;
  expect_changes(gpu(), range, 0);
}

TEST_F(CudaAdamW, AListNeedsCopiesAndAllItsParts) {
  const Range range(gpu(), 4, 0, Rng(1));
  AdamW op = range.op;
  op.rounded = {};
  EXPECT_DEATH(adamw(gpu(), op), "lists_changes");
  op = range.op;
  op.workspace = rows(op.workspace, 0, 1);
  EXPECT_DEATH(adamw(gpu(), op), "lists_changes");
  op = range.op;
  op.changed_count = {};
  EXPECT_DEATH(adamw(gpu(), op), "lists_changes");
}

}  // namespace
}  // namespace tandem::kernels
