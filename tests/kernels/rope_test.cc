#include "kernels/ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using runtime::tensor;

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

}  // namespace
}  // namespace tandem::kernels
