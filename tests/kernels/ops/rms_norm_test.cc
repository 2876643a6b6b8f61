// RMS norm on a CPU: rows do not depend on their batch, gradients follow finite differences, and
// bf16 rounds once.
#include "kernels/ops/rms_norm.h"

#include <gtest/gtest.h>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

constexpr float kEps = 0.05f;  // large, so that differences of a small row stay smooth

struct Shape {
  std::int64_t r, c;
};

class RmsNormShapes : public testing::TestWithParam<Shape> {};

TEST_P(RmsNormShapes, RowsDoNotDependOnTheirBatch) {
  const auto [r, c] = GetParam();
  Rng rng(1);
  const Floats x = normals(rng, r * c), w = normals(rng, c);
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    Floats all = poison(r * c), alone = all, inv = poison(r);
    const TensorView xs = tensor(x.data(), {r, c}), ws = tensor(w.data(), {c});
    backend.rms_norm(stream, {.x = xs,
                              .weight = ws,
                              .y = tensor(all.data(), {r, c}),
                              .inv_rms = tensor(inv.data(), {r}),
                              .eps = kEps});
    for (std::int64_t i = 0; i < r; ++i) {
      backend.rms_norm(stream, {.x = rows(xs, i, 1),
                                .weight = ws,
                                .y = rows(tensor(alone.data(), {r, c}), i, 1),
                                .eps = kEps});
    }
    EXPECT_TRUE(same_bits(all, alone));
    return joined({all, inv});
  });
  EXPECT_FALSE(has_nan(y));
}

TEST_P(RmsNormShapes, BackwardMatchesFiniteDifferences) {
  const auto [rows, c] = GetParam();
  const std::int64_t r = std::min<std::int64_t>(rows, 3);
  Rng rng(2);
  Floats x = normals(rng, r * c), w = normals(rng, c);
  const Floats dy = normals(rng, r * c);
  const auto forward = [&](const Backend& backend, const Stream& stream, Floats& y, Floats& inv) {
    backend.rms_norm(stream, {.x = tensor(x.data(), {r, c}),
                              .weight = tensor(w.data(), {c}),
                              .y = tensor(y.data(), {r, c}),
                              .inv_rms = tensor(inv.data(), {r}),
                              .eps = kEps});
  };
  const Floats both = same_everywhere([&](const Backend& backend, const Stream& stream) {
    Floats y = poison(r * c), inv = poison(r),
           space = poison(rms_norm_workspace(device::DeviceKind::kCpu, r, c));
    Floats dx(static_cast<std::size_t>(r * c), 0.0f), dw(static_cast<std::size_t>(c), 0.0f);
    forward(backend, stream, y, inv);
    RmsNormBackward op{.dy = tensor(dy.data(), {r, c}),
                       .x = tensor(x.data(), {r, c}),
                       .weight = tensor(w.data(), {c}),
                       .inv_rms = tensor(inv.data(), {r}),
                       .dx = tensor(dx.data(), {r, c}),
                       .dweight = tensor(dw.data(), {c}),
                       .workspace = tensor(space.data(), {std::ssize(space)})};
    backend.rms_norm_backward(stream, op);
    Floats in_place = dy, again(static_cast<std::size_t>(c), 0.0f);
    op.dy = op.dx = tensor(in_place.data(), {r, c});
    op.dweight = tensor(again.data(), {c});
    op.output = Output::kWrite;
    backend.rms_norm_backward(stream, op);
    for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_EQ(dx[i], in_place[i]);
    EXPECT_TRUE(same_bits(dw, again));
    return joined({dx, dw});
  });
  const auto loss = [&] {
    Floats y = poison(r * c), inv = poison(r);
    forward(cpu_backend(), Stream{}, y, inv);
    return dot(y, dy);
  };
  const std::span<const float> gradients(both);
  const auto split = static_cast<std::size_t>(r * c);
  expect_gradient(x, gradients.first(split), loss);
  expect_gradient(w, gradients.subspan(split), loss);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RmsNormShapes,
                         testing::Values(Shape{1, 1}, Shape{3, 5}, Shape{4, 16}, Shape{5, 33},
                                         Shape{600, 64}));

TEST(RmsNorm, AddUpdatesTheResidualFirst) {
  Rng rng(3);
  const std::int64_t r = 4, c = 24;
  const Floats x = normals(rng, r * c), more = normals(rng, r * c), w = normals(rng, c);
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    Floats residual = x, y = poison(r * c), sum = x, expected = poison(r * c);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    backend.rms_norm(stream, {.x = tensor(residual.data(), {r, c}),
                              .weight = tensor(w.data(), {c}),
                              .y = tensor(y.data(), {r, c}),
                              .eps = kEps,
                              .add = tensor(more.data(), {r, c})});
    backend.rms_norm(stream, {.x = tensor(sum.data(), {r, c}),
                              .weight = tensor(w.data(), {c}),
                              .y = tensor(expected.data(), {r, c}),
                              .eps = kEps});
    EXPECT_TRUE(same_bits(residual, sum));
    EXPECT_TRUE(same_bits(y, expected));
    return y;
  });
}

TEST(RmsNorm, HeadsOfAFusedBufferAreRows) {
  Rng rng(4);
  const std::int64_t t = 5, h = 3, d = 8, width = 40;
  const Floats fused = normals(rng, t * width), w = normals(rng, d);
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    Floats y = poison(t * h * d), inv = poison(t * h);
    const TensorView q = split_heads(columns(tensor(fused.data(), {t, width}), 8, h * d), h);
    backend.rms_norm(stream, {.x = q,
                              .weight = tensor(w.data(), {d}),
                              .y = tensor(y.data(), {t, h, d}),
                              .inv_rms = tensor(inv.data(), {t, h}),
                              .eps = kEps});
    for (std::int64_t row = 0; row < t * h; ++row) {
      Floats alone = poison(d);
      const float* from = fused.data() + row / h * width + 8 + row % h * d;
      backend.rms_norm(stream, {.x = tensor(from, {1, d}),
                                .weight = tensor(w.data(), {d}),
                                .y = tensor(alone.data(), {1, d}),
                                .eps = kEps});
      EXPECT_TRUE(same_bits(alone, {y.data() + row * d, static_cast<std::size_t>(d)}));
    }
    return joined({y, inv});
  });
}

TEST_P(RmsNormShapes, InBf16ItRoundsOnce) {
  const auto [r, c] = GetParam();
  Rng rng(5);
  const auto operand = [&](std::int64_t n) { return rounded(normals(rng, n), DType::kBF16); };
  const Floats x = operand(r * c), w = operand(c), dy = operand(r * c), branch = operand(r * c);
  const Floats dw_before = normals(rng, c);
  const DType bf16 = DType::kBF16, f32 = DType::kF32;
  expect_rounded_once(
      {bf16, f32, bf16, bf16, f32}, [&](DType dtype, const Backend& backend, const Stream& stream) {
        const Stored xs(dtype, {r, c}, x), ws(dtype, {c}, w), dys(dtype, {r, c}, dy);
        const Stored y = Stored::poisoned(dtype, {r, c}), inv = Stored::poisoned(f32, {r});
        const Stored added(dtype, {r, c}, branch), dw(f32, {c}, dw_before);
        const Stored space =
            Stored::poisoned(f32, {rms_norm_workspace(device::DeviceKind::kCpu, r, c)});
        backend.rms_norm(stream, {.x = xs, .weight = ws, .y = y, .inv_rms = inv, .eps = kEps});
        RmsNormBackward op{.dy = dys,
                           .x = xs,
                           .weight = ws,
                           .inv_rms = inv,
                           .dx = added,
                           .dweight = dw,
                           .workspace = space};
        backend.rms_norm_backward(stream, op);
        op.dx = dys;
        op.output = Output::kWrite;
        backend.rms_norm_backward(stream, op);
        return std::vector{y.values(), inv.values(), added.values(), dys.values(), dw.values()};
      });
}

// The sum of residual and branch is stored in bf16 for the next layer. The norm must be of this
// rounded sum, not of the exact one.
TEST(RmsNorm, InBf16TheResidualIsRoundedBeforeItIsNormalised) {
  Rng rng(6);
  const std::int64_t r = 4, c = 24;
  const DType bf16 = DType::kBF16;
  const Floats x = rounded(normals(rng, r * c), bf16), more = rounded(normals(rng, r * c), bf16);
  Floats sum = x;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  const Stored ws(bf16, {c}, normals(rng, c)), summed(bf16, {r, c}, sum);
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Stored residual(bf16, {r, c}, x), add(bf16, {r, c}, more);
    const Stored y = Stored::poisoned(bf16, {r, c}), expected = Stored::poisoned(bf16, {r, c});
    backend.rms_norm(stream, {.x = residual, .weight = ws, .y = y, .eps = kEps, .add = add});
    backend.rms_norm(stream, {.x = summed, .weight = ws, .y = expected, .eps = kEps});
    EXPECT_TRUE(same_bits(residual.values(), summed.values()));
    EXPECT_TRUE(same_bits(y.values(), expected.values()));
    return y.values();
  });
}

}  // namespace
}  // namespace tandem::kernels
