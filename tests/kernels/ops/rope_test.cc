#include "kernels/ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

struct Table {
  Table(std::int64_t positions, std::int64_t channels)
      : cos(poison(positions * channels / 2)), sin(cos) {
    cosines = tensor(cos.data(), {positions, channels / 2});
    sines = tensor(sin.data(), {positions, channels / 2});
    fill_rope_table({.cos = cosines, .sin = sines, .theta = 1e6});
  }
  Floats cos, sin;
  TensorView cosines, sines;
};

TEST(Rope, TurnsPairsByPositionAndBackwardTurnsBack) {
  for (const std::int64_t d : {2, 10, 32, 64}) {
    const std::int64_t t = 9, h = 3, half = d / 2, width = h * d + 5;
    Rng rng(1);
    const Table table(100, d);
    const Floats before = normals(rng, t * width);
    const auto positions = ids_below(rng, t, 100);
    const Floats after = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats x = before, back;
      Rope op{.x = split_heads(columns(tensor(x.data(), {t, width}), 2, h * d), h),
              .positions = tensor(positions.data(), {t}),
              .cos = table.cosines,
              .sin = table.sines};
      backend.rope(stream, op);
      back = x;
      op.x = split_heads(columns(tensor(back.data(), {t, width}), 2, h * d), h);
      op.direction = Direction::kBackward;
      backend.rope(stream, op);
      for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], before[i], 1e-6);
      return x;
    });
    for (std::int64_t row = 0; row < t * h; ++row) {
      const std::int64_t at = row / h * width + 2 + row % h * d;
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = positions[row / h] * std::pow(1e6, -2.0 * i / d);
        const double a = before[at + i], b = before[at + half + i];
        ASSERT_NEAR(after[at + i], a * std::cos(angle) - b * std::sin(angle), 1e-5);
        ASSERT_NEAR(after[at + half + i], b * std::cos(angle) + a * std::sin(angle), 1e-5);
      }
    }
    for (std::int64_t row = 0; row < t; ++row) {
      EXPECT_EQ(after[row * width + 1], before[row * width + 1]);
      EXPECT_EQ(after[row * width + 2 + h * d], before[row * width + 2 + h * d]);
    }
  }
}

// Llama 3.2's frequencies, as transformers' _compute_llama3_parameters gives them (in f32): those
// that turn often are as they were, slow ones turn 32 times slower, and some lie between.
TEST(Rope, SlowsLowFrequenciesAsLlama3Does) {
  const std::vector<double> frequencies = {
      1.0,          0.6636013,    0.4403666,    0.2922278,    0.1939228,    0.1286874,
      0.0853971,    0.05666962,   0.03760603,   0.02495541,   0.01656044,   0.01098953,
      0.007292665,  0.004839421,  0.003211446,  0.001290548,  0.0004295567, 9.708286e-05,
      1.946164e-05, 1.291477e-05, 8.570256e-06, 5.687232e-06, 3.774054e-06, 2.504467e-06,
      1.661967e-06, 1.102884e-06, 7.318749e-07, 4.856731e-07, 3.222933e-07, 2.138742e-07,
      1.419272e-07, 9.418306e-08};
  constexpr std::int64_t kPositions = 3, kHalf = 32;
  Floats cosines = poison(kPositions * kHalf), sines = cosines;
  fill_rope_table(
      {.cos = tensor(cosines.data(), {kPositions, kHalf}),
       .sin = tensor(sines.data(), {kPositions, kHalf}),
       .theta = 5e5,
       .scaling = RopeScaling{
           .factor = 32, .low_freq_factor = 1, .high_freq_factor = 4, .original_positions = 8192}});
  for (std::size_t i = 0; i < kHalf; ++i) {
    for (std::size_t p = 0; p < kPositions; ++p) {
      const double angle = static_cast<double>(p) * frequencies[i];
      EXPECT_NEAR(sines[p * kHalf + i], std::sin(angle), 1e-6 * angle) << i;
      EXPECT_NEAR(cosines[p * kHalf + i], std::cos(angle), 1e-6) << i;
    }
  }
}

TEST(Rope, BackwardIsTheTransposeOfForward) {
  const std::int64_t t = 4, h = 2, d = 6;
  Rng rng(2);
  const Table table(10, d);
  const Floats x = normals(rng, t * h * d), dy = normals(rng, t * h * d);
  const auto positions = ids_below(rng, t, 10);
  const auto turned = [&](Floats values, Direction direction) {
    rope(Stream{}, {.x = tensor(values.data(), {t, h, d}),
                    .positions = tensor(positions.data(), {t}),
                    .cos = table.cosines,
                    .sin = table.sines,
                    .direction = direction});
    return values;
  };
  EXPECT_NEAR(dot(turned(x, Direction::kForward), dy), dot(x, turned(dy, Direction::kBackward)),
              1e-5);
}

TEST(Rope, InBf16ItRoundsOnce) {
  for (const std::int64_t d : {2, 10, 32, 64}) {
    const std::int64_t t = 9, h = 3, width = h * d + 5;
    Rng rng(3);
    const Table table(100, d);
    const Floats before = rounded(normals(rng, t * width), DType::kBF16);
    const auto positions = ids_below(rng, t, 100);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      expect_rounded_once(
          {DType::kBF16}, [&](DType dtype, const Backend& backend, const Stream& stream) {
            const Stored x(dtype, {t, width}, before);
            backend.rope(stream, {.x = device::split_heads(device::columns(x, 2, h * d), h),
                                  .positions = tensor(positions.data(), {t}),
                                  .cos = table.cosines,
                                  .sin = table.sines,
                                  .direction = direction});
            return std::vector<Floats>{x.values()};
          });
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
