// Packed attention on a GPU against the CPU, forward and backward, and AT-1 for its rows.
#include "kernels/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/kernels/cuda/attention_forward.h"

namespace tandem::kernels {
namespace {

using device::DeviceKind;
using device::tensor;

// In bf16 the result is rounded to 8 bits, and so were the weights, or the scores' gradients, that
// it is a sum of. A rounding moves a number by up to 2^-9 of it, as a whole by 1.7e-3 (root mean
// square); those of a sum's terms together move it by about as much where few terms count. Where
// terms cancel a single element may be off by more; the whole is not.
void expect_near(std::span<const float> actual, std::span<const float> expected, DType dtype) {
  if (dtype == DType::kF32) return expect_close(actual, expected, dtype);
  ASSERT_EQ(actual.size(), expected.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = static_cast<double>(actual[i]) - expected[i];
    error += off * off;
    size += static_cast<double>(expected[i]) * expected[i];
  }
  EXPECT_LT(std::sqrt(error / size), 3e-3);
}

struct Expected {
  Floats out, lse;
};

Expected forward_on_cpu(const Batch& batch) {
  const auto [h, g, d] = batch.heads;
  Expected cpu{poison(batch.rows * h * d), poison(batch.rows * h)};
  attention(Stream{}, AttentionPacked{.q = batch.q(batch.qkv),
                                      .k = batch.k(batch.qkv),
                                      .v = batch.v(batch.qkv),
                                      .segments = batch.segments,
                                      .scale = batch.scale(),
                                      .out = tensor(cpu.out.data(), {batch.rows, h, d}),
                                      .lse = tensor(cpu.lse.data(), {batch.rows, h})});
  return cpu;
}

TEST_P(CudaAttention, PackedMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const HeadShape& heads : head_shapes(dtype)) {
    for (const std::uint64_t seed : emulated() ? std::vector{1ul} : std::vector{1ul, 2ul}) {
      SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d);
      const Batch batch = batch_for(heads, dtype, seed);
      const Expected cpu = forward_on_cpu(batch);
      const Forward forward(gpu(), dtype, batch);
      expect_near(forward.out.values(), cpu.out, dtype);
      expect_close(forward.lse.values(), cpu.lse, DType::kF32);
      if (dtype != DType::kF32) continue;
      // No sequence is longer than a split.
      EXPECT_TRUE(same_bits(forward.out.values(), cpu.out));
      EXPECT_TRUE(same_bits(forward.lse.values(), cpu.lse));
    }
  }
}

TEST_P(CudaAttention, SplitsJoinToTheCpusResult) {
  const DType dtype = GetParam();
  Batch batch = make_long_batch({2, 1, 16});
  batch.qkv = rounded(batch.qkv, dtype);
  const Expected cpu = forward_on_cpu(batch);
  const Forward forward(gpu(), dtype, batch);
  expect_near(forward.out.values(), cpu.out, dtype);
  expect_close(forward.lse.values(), cpu.lse, DType::kF32);
}

TEST_P(CudaAttention, NoSequencesAreNoWork) {
  const Operand q(gpu(), GetParam(), {0, 2, 16}, Floats{});
  const Operand k(gpu(), GetParam(), {0, 1, 16}, Floats{});
  attention(gpu(), AttentionPacked{.q = q, .k = k, .v = k, .segments = {}, .scale = 1, .out = q});
  EXPECT_TRUE(q.values().empty());
}

// A row's result depends neither on later rows nor on other sequences of the batch.
TEST_P(CudaAttention, At1ARowDependsOnItsPositionsAlone) {
  const DType dtype = GetParam();
  constexpr std::int32_t kKept = 70, kAll = 100;
  Batch batch{.heads = {2, 1, 16}};
  batch.add_family(kAll, {});
  Rng rng(13);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), dtype);
  const Forward whole(gpu(), dtype, batch);
  Batch other{.heads = batch.heads};
  other.add_family(9, {40});
  other.add_family(kAll, {});
  other.qkv = rounded(normals(rng, other.rows * other.width(), 30.0f), dtype);
  const std::int64_t begin = other.segments.back().begin;
  std::copy_n(batch.qkv.begin(), kKept * batch.width(), other.qkv.begin() + begin * other.width());
  const Forward within(gpu(), dtype, other);
  const auto part = [](const Floats& all, std::int64_t from, std::int64_t width) {
    return Floats(all.begin() + from * width, all.begin() + (from + kKept) * width);
  };
  EXPECT_TRUE(same_bits(part(whole.out.values(), 0, 32), part(within.out.values(), begin, 32)));
  EXPECT_TRUE(same_bits(part(whole.lse.values(), 0, 2), part(within.lse.values(), begin, 2)));
}

void expect_backward(const Stream& gpu, DType dtype, const Batch& batch) {
  const auto [h, g, d] = batch.heads;
  const std::int64_t rows = batch.rows;
  Rng rng(5);
  const Floats dout = rounded(normals(rng, rows * h * d), dtype);
  const Forward forward(gpu, dtype, batch);
  const Operand douts(gpu, dtype, {rows, h, d}, dout);
  const Operand to = Operand::poisoned(gpu, dtype, {rows, batch.width()});
  const std::int64_t workspace = attention_backward_workspace(
      DeviceKind::kCuda, batch.q(forward.qkv.view()), batch.k(forward.qkv.view()));
  const Operand space = Operand::poisoned(gpu, DType::kF32, {workspace});
  AttentionBackward op{.dout = douts,
                       .q = batch.q(forward.qkv.view()),
                       .k = batch.k(forward.qkv.view()),
                       .v = batch.v(forward.qkv.view()),
                       .out = forward.out,
                       .lse = forward.lse,
                       .segments = as_segments(forward.segments, batch),
                       .scale = batch.scale(),
                       .dq = batch.q(to.view()),
                       .dk = batch.k(to.view()),
                       .dv = batch.v(to.view()),
                       .workspace = space};
  attention(gpu, op);
  const Floats gradient = to.values();

  // The CPU's, from the GPU's own forward.
  const Floats out = forward.out.values(), lse = forward.lse.values();
  Floats cpu = poison(rows * batch.width());
  attention(Stream{}, AttentionBackward{.dout = tensor(dout.data(), {rows, h, d}),
                                        .q = batch.q(batch.qkv),
                                        .k = batch.k(batch.qkv),
                                        .v = batch.v(batch.qkv),
                                        .out = tensor(out.data(), {rows, h, d}),
                                        .lse = tensor(lse.data(), {rows, h}),
                                        .segments = batch.segments,
                                        .scale = batch.scale(),
                                        .dq = batch.q(cpu),
                                        .dk = batch.k(cpu),
                                        .dv = batch.v(cpu)});
  // Parts of their own, whose sizes differ.
  for (const auto& [begin, count] : {std::pair{std::int64_t{0}, h}, {h, g}, {h + g, g}}) {
    const auto part = [&](const Floats& all) {
      Floats some;
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto from = all.begin() + row * batch.width() + begin * d;
        some.insert(some.end(), from, from + count * d);
      }
      return some;
    };
    expect_near(part(gradient), part(cpu), dtype);
  }
  attention(gpu, op);
  EXPECT_TRUE(same_bits(to.values(), gradient)) << "a second run";
}

TEST_P(CudaAttention, At2BackwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const HeadShape& heads : head_shapes(dtype)) {
    // These two are the slowest of all on the emulator; 16 is padded as 64 is, and 144 as 256.
    if (emulated() && dtype == DType::kBF16 && (heads.d == 64 || heads.d == 144)) continue;
    SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d);
    const Batch batch = batch_for(heads, dtype, 4);
    expect_backward(gpu(), dtype, batch);
  }
  Batch batch = make_long_batch({2, 1, 16});
  batch.qkv = rounded(batch.qkv, dtype);
  expect_backward(gpu(), dtype, batch);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaAttention, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
