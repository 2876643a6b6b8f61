// Log-probabilities on a GPU against the CPU; rows have the same bits in any batch and at any
// alignment.
#include "kernels/ops/log_prob.h"

#include <cmath>

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::columns;
using device::tensor;

using CudaLogProb = CudaDTypeTest;
using CudaLogProbF32 = CudaTest;

constexpr float kTemperature = 0.7f;

struct Shape {
  std::int64_t r, v;
};

// Around a pack and a block's reach (1,024 or 2,048 elements), with rows that no pack divides.
std::vector<Shape> shapes() {
  std::vector<Shape> all = {{0, 8}, {1, 1}, {3, 5}, {4, 64}, {2, 1000}, {2, 2049}, {1, 5003}};
  if (!emulated()) all.insert(all.end(), {{300, 151936}, {70000, 40}});
  return all;
}

struct Row {
  Floats log_prob, entropy, lse;
};

Row on_cpu(const Floats& logits, const std::vector<std::int32_t>& targets, Shape shape) {
  Row row{poison(shape.r), poison(shape.r), poison(shape.r)};
  log_prob(Stream{}, LogProb{.logits = tensor(logits.data(), {shape.r, shape.v}),
                             .targets = tensor(targets.data(), {shape.r}),
                             .temperature = kTemperature,
                             .log_prob = tensor(row.log_prob.data(), {shape.r}),
                             .entropy = tensor(row.entropy.data(), {shape.r}),
                             .lse = tensor(row.lse.data(), {shape.r})});
  return row;
}

TEST_P(CudaLogProb, ForwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const auto [r, v] : shapes()) {
    SCOPED_TRACE(testing::Message() << r << " x " << v);
    Rng rng(static_cast<std::uint64_t>(r + v));
    Floats logits = rounded(normals(rng, r * v, 4), dtype);
    if (v > 8) {  // minus infinity has no part in anything; a large maximum comes late
      for (std::int64_t i = 0; i < r; ++i) {
        logits[i * v + 1] = -INFINITY;
        logits[i * v + v - 1] = 12;
      }
    }
    std::vector<std::int32_t> targets = ids_below(rng, r, v);
    for (std::int64_t i = 0; i < r; ++i) {
      if (std::isinf(logits[i * v + targets[i]])) targets[i] = 0;
    }
    const Operand xs(gpu(), dtype, {r, v}, logits), at(gpu(), {r}, targets);
    const Operand log_probs = Operand::poisoned(gpu(), DType::kF32, {r});
    const Operand alone = Operand::poisoned(gpu(), DType::kF32, {r});
    const Operand entropy = Operand::poisoned(gpu(), DType::kF32, {r});
    const Operand lse = Operand::poisoned(gpu(), DType::kF32, {r});
    LogProb op{.logits = xs,
               .targets = at,
               .temperature = kTemperature,
               .log_prob = log_probs,
               .entropy = entropy,
               .lse = lse};
    log_prob(gpu(), op);
    const Row expected = on_cpu(logits, targets, {r, v});
    expect_close(log_probs.values(), expected.log_prob, DType::kF32);
    expect_close(entropy.values(), expected.entropy, DType::kF32);
    expect_close(lse.values(), expected.lse, DType::kF32);
    // The bits do not depend on which other outputs are asked for.
    op.entropy = op.lse = {};
    op.log_prob = alone;
    log_prob(gpu(), op);
    EXPECT_TRUE(same_bits(alone.values(), log_probs.values()));
  }
}

TEST_P(CudaLogProb, RowsDoNotDependOnTheirBatchOrAlignment) {
  const DType dtype = GetParam();
  const std::int64_t r = 5, v = 3000;
  Rng rng(7);
  const Floats logits = normals(rng, r * v, 3);
  const std::vector<std::int32_t> targets = ids_below(rng, r, v);
  const Operand xs(gpu(), dtype, {r, v}, logits), at(gpu(), {r}, targets);
  const Operand together = Operand::poisoned(gpu(), DType::kF32, {r});
  log_prob(gpu(), LogProb{.logits = xs, .targets = at, .log_prob = together});
  const Floats all = together.values();
  for (std::int64_t i = 0; i < r; ++i) {
    Floats shifted(static_cast<std::size_t>(v + 1), 0.0f);
    std::copy_n(logits.begin() + i * v, v, shifted.begin() + 1);
    const Operand odd(gpu(), dtype, {1, v + 1}, shifted);
    const Operand alone = Operand::poisoned(gpu(), DType::kF32, {1});
    log_prob(gpu(), LogProb{.logits = columns(odd, 1, v),
                            .targets = device::rows(at, i, 1),
                            .log_prob = alone});
    EXPECT_TRUE(same_bits(alone.values(), std::span(all).subspan(i, 1))) << i;
  }
}

// Elementwise once lse is given: the CPU's bits, rounded once.
TEST_P(CudaLogProb, BackwardGivesTheCpusBitsAndMayWriteOverItsInput) {
  const DType dtype = GetParam();
  for (const auto [r, v] : shapes()) {
    SCOPED_TRACE(testing::Message() << r << " x " << v);
    Rng rng(static_cast<std::uint64_t>(r * v));
    Floats logits = rounded(normals(rng, r * v, 4), dtype);
    if (v > 8) {
      for (std::int64_t i = 0; i < r; ++i) logits[i * v + 1] = -INFINITY;
    }
    const std::vector<std::int32_t> targets = ids_below(rng, r, v);
    const Row forward = on_cpu(logits, targets, {r, v});
    const Floats dlog_prob = normals(rng, r), dentropy = normals(rng, r);
    const Operand at(gpu(), {r}, targets), lse(gpu(), DType::kF32, {r}, forward.lse);
    const Operand entropy(gpu(), DType::kF32, {r}, forward.entropy);
    const Operand dlog_probs(gpu(), DType::kF32, {r}, dlog_prob);
    const Operand dentropies(gpu(), DType::kF32, {r}, dentropy);
    for (const bool with_entropy : {false, true}) {
      const Operand xs(gpu(), dtype, {r, v}, logits);
      const Operand dlogits = Operand::poisoned(gpu(), dtype, {r, v});
      LogProbBackward op{.logits = xs,
                         .targets = at,
                         .temperature = kTemperature,
                         .lse = lse,
                         .dlog_prob = dlog_probs,
                         .dlogits = dlogits};
      if (with_entropy) {
        op.entropy = entropy;
        op.dentropy = dentropies;
      }
      log_prob(gpu(), op);
      op.dlogits = xs;
      log_prob(gpu(), op);

      Floats expected = poison(r * v);
      op.logits = tensor(logits.data(), {r, v});
      op.targets = tensor(targets.data(), {r});
      op.lse = tensor(forward.lse.data(), {r});
      op.dlog_prob = tensor(dlog_prob.data(), {r});
      op.dlogits = tensor(expected.data(), {r, v});
      if (with_entropy) {
        op.entropy = tensor(forward.entropy.data(), {r});
        op.dentropy = tensor(dentropy.data(), {r});
      }
      log_prob(Stream{}, op);
      EXPECT_TRUE(same_bits(dlogits.values(), rounded(expected, dtype)));
      EXPECT_TRUE(same_bits(dlogits.values(), xs.values()));
    }
  }
}

// The logits are in f32 and the gradient in bf16: it is the f32 gradient, rounded, on packs and off
// their alignment.
TEST_F(CudaLogProbF32, BackwardMayRoundItsGradient) {
  for (const auto [r, v] : shapes()) {
    for (const std::int64_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << r << " x " << v << " from " << offset);
      Rng rng(static_cast<std::uint64_t>(r * v));
      const std::vector<std::int32_t> targets = ids_below(rng, r, v);
      const Operand xs(gpu(), DType::kF32, {r, v}, normals(rng, r * v, 4));
      const Operand at(gpu(), {r}, targets);
      const Operand lse(gpu(), DType::kF32, {r}, normals(rng, r));
      const Operand entropy(gpu(), DType::kF32, {r}, normals(rng, r));
      const Operand dlog_prob(gpu(), DType::kF32, {r}, normals(rng, r));
      const Operand dentropy(gpu(), DType::kF32, {r}, normals(rng, r));
      const Operand wide = Operand::poisoned(gpu(), DType::kF32, {r, v});
      const Operand narrow(gpu(), DType::kBF16, {r, v + offset}, Floats(r * (v + offset), 7.0f));
      LogProbBackward op{.logits = xs,
                         .targets = at,
                         .temperature = kTemperature,
                         .lse = lse,
                         .entropy = entropy,
                         .dlog_prob = dlog_prob,
                         .dentropy = dentropy,
                         .dlogits = wide};
      log_prob(gpu(), op);
      op.dlogits = columns(narrow, offset, v);
      log_prob(gpu(), op);
      const Floats nearest = rounded(wide.values(), DType::kBF16), got = narrow.values();
      for (std::int64_t i = 0; i < r; ++i) {
        const auto row = std::span(got).subspan(i * (v + offset), v + offset);
        EXPECT_TRUE(same_bits(row.subspan(offset), std::span(nearest).subspan(i * v, v)));
        EXPECT_TRUE(offset == 0 || row[0] == 7.0f);
      }
    }
  }
}

TEST_F(CudaLogProbF32, AGradientOfAnotherDtypeIsBf16AndNotInPlace) {
  const Operand x = Operand::poisoned(gpu(), DType::kF32, {1, 4});
  const Operand narrow = Operand::poisoned(gpu(), DType::kBF16, {1, 4});
  const Operand row = Operand::poisoned(gpu(), DType::kF32, {1});
  const Operand at(gpu(), {1}, std::vector<std::int32_t>{0});
  LogProbBackward op{.logits = x,
                     .targets = at,
                     .lse = row,
                     .dlog_prob = row,
                     .dlogits = device::tensor(x.view().data, DType::kBF16, {1, 4})};
  EXPECT_DEATH(log_prob(gpu(), op), "dlogits.data != op.logits.data");
  op.logits = narrow;
  op.dlogits = x;
  EXPECT_DEATH(log_prob(gpu(), op), "logits.dtype == device::DType::kF32");
}

INSTANTIATE_TEST_SUITE_P(Types, CudaLogProb, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
