#include "kernels/ops/log_prob.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

struct Forward {
  Floats log_prob, entropy, lse;
};

struct Rows {
  std::int64_t r, v;
  float temperature;
  Floats logits;
  std::vector<std::int32_t> targets;
};

Rows make_rows(std::int64_t r, std::int64_t v, float temperature, std::uint64_t seed) {
  Rng rng(seed);
  return {r, v, temperature, normals(rng, r * v, 2), ids_below(rng, r, v)};
}

Forward run(const Backend& backend, const Stream& stream, const Rows& rows) {
  Forward result{poison(rows.r), poison(rows.r), poison(rows.r)};
  backend.log_prob(stream, {.logits = tensor(rows.logits.data(), {rows.r, rows.v}),
                            .targets = tensor(rows.targets.data(), {rows.r}),
                            .temperature = rows.temperature,
                            .log_prob = tensor(result.log_prob.data(), {rows.r}),
                            .entropy = tensor(result.entropy.data(), {rows.r}),
                            .lse = tensor(result.lse.data(), {rows.r})});
  return result;
}

TEST(LogProb, IsLogSoftmaxAndEntropy) {
  for (const std::int64_t v : {1, 5, 16, 32, 1001}) {
    const Rows rows = make_rows(40, v, 0.7f, 1);
    const Floats all = same_everywhere([&](const Backend& backend, const Stream& stream) {
      const Forward forward = run(backend, stream, rows);
      Floats bare = poison(rows.r);
      backend.log_prob(stream, {.logits = tensor(rows.logits.data(), {rows.r, v}),
                                .targets = tensor(rows.targets.data(), {rows.r}),
                                .temperature = rows.temperature,
                                .log_prob = tensor(bare.data(), {rows.r})});
      EXPECT_TRUE(same_bits(bare, forward.log_prob)) << "entropy asked for or not";
      return joined({forward.log_prob, forward.entropy, forward.lse});
    });
    for (std::int64_t r = 0; r < rows.r; ++r) {
      double sum = 0, entropy = 0;
      const auto z = [&](std::int64_t i) {
        return static_cast<double>(rows.logits[r * v + i]) / static_cast<double>(rows.temperature);
      };
      for (std::int64_t i = 0; i < v; ++i) sum += std::exp(z(i));
      for (std::int64_t i = 0; i < v; ++i) {
        entropy -= std::exp(z(i)) / sum * (z(i) - std::log(sum));
      }
      ASSERT_NEAR(all[r], z(rows.targets[r]) - std::log(sum), 2e-6 * (1 + std::abs(all[r])));
      ASSERT_NEAR(all[rows.r + r], entropy, 1e-5);
      ASSERT_NEAR(all[2 * rows.r + r], std::log(sum), 2e-6 * (1 + std::abs(all[2 * rows.r + r])));
    }
  }
}

TEST(LogProb, BackwardMatchesFiniteDifferences) {
  for (const bool with_entropy : {false, true}) {
    Rows rows = make_rows(3, 19, 0.8f, 2);
    Rng rng(3);
    const Floats dlog_prob = normals(rng, rows.r), dentropy = normals(rng, rows.r);
    const Floats dlogits = same_everywhere([&](const Backend& backend, const Stream& stream) {
      const Forward forward = run(backend, stream, rows);
      Floats out = poison(rows.r * rows.v), in_place = rows.logits;
      LogProbBackward op{.logits = tensor(rows.logits.data(), {rows.r, rows.v}),
                         .targets = tensor(rows.targets.data(), {rows.r}),
                         .temperature = rows.temperature,
                         .lse = tensor(forward.lse.data(), {rows.r}),
                         .dlog_prob = tensor(dlog_prob.data(), {rows.r}),
                         .dlogits = tensor(out.data(), {rows.r, rows.v})};
      if (with_entropy) {
        op.entropy = tensor(forward.entropy.data(), {rows.r});
        op.dentropy = tensor(dentropy.data(), {rows.r});
      }
      backend.log_prob_backward(stream, op);
      op.logits = op.dlogits = tensor(in_place.data(), {rows.r, rows.v});
      backend.log_prob_backward(stream, op);
      EXPECT_TRUE(same_bits(out, in_place));
      return out;
    });
    expect_gradient(rows.logits, dlogits, [&] {
      const Forward forward = run(cpu_backend(), Stream{}, rows);
      return dot(forward.log_prob, dlog_prob) +
             (with_entropy ? dot(forward.entropy, dentropy) : 0.0);
    });
  }
}

TEST(LogProb, ImpossibleTokensHaveNoPartInTheEntropy) {
  Rows rows = make_rows(1, 4, 1.0f, 4);
  rows.logits = {0, 0, -INFINITY, -1e30f};
  rows.targets = {0};
  const Forward forward = run(cpu_backend(), Stream{}, rows);
  EXPECT_NEAR(forward.log_prob[0], -std::log(2.0), 1e-6);
  EXPECT_NEAR(forward.entropy[0], std::log(2.0), 1e-6);
}

// Logits in f32 with gradients in bf16, and both in bf16: the target's gradient is rounded once
// too.
TEST(LogProb, GradientsInBf16AreRoundedOnce) {
  for (const std::int64_t v : {5, 16, 1001}) {
    Rows rows = make_rows(7, v, 0.7f, 5);
    rows.logits = rounded(rows.logits, DType::kBF16);
    Rng rng(6);
    const Floats dlog_prob = normals(rng, rows.r), dentropy = normals(rng, rows.r);
    for (const bool wide_logits : {false, true}) {
      const DType f32 = DType::kF32;
      expect_rounded_once(
          {f32, f32, DType::kBF16}, [&](DType dtype, const Backend& backend, const Stream& stream) {
            const Stored logits(wide_logits ? f32 : dtype, {rows.r, v}, rows.logits);
            const Stored dlogits = Stored::poisoned(dtype, {rows.r, v});
            const Stored log_prob = Stored::poisoned(f32, {rows.r});
            const Stored entropy = Stored::poisoned(f32, {rows.r}),
                         lse = Stored::poisoned(f32, {rows.r});
            const TensorView targets = tensor(rows.targets.data(), {rows.r});
            backend.log_prob(stream, {.logits = logits,
                                      .targets = targets,
                                      .temperature = rows.temperature,
                                      .log_prob = log_prob,
                                      .entropy = entropy,
                                      .lse = lse});
            backend.log_prob_backward(stream, {.logits = logits,
                                               .targets = targets,
                                               .temperature = rows.temperature,
                                               .lse = lse,
                                               .entropy = entropy,
                                               .dlog_prob = tensor(dlog_prob.data(), {rows.r}),
                                               .dentropy = tensor(dentropy.data(), {rows.r}),
                                               .dlogits = dlogits});
            return std::vector{log_prob.values(), entropy.values(), dlogits.values()};
          });
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
