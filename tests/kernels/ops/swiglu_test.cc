#include "kernels/ops/swiglu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

TEST(Swiglu, ForwardIsSiluTimesUp) {
  for (const std::int64_t f : {1, 17, 192}) {
    const std::int64_t t = 150;
    Rng rng(1);
    Floats x = normals(rng, t * 2 * f, 3);
    x[0] = 200;  // saturated gates stay finite
    x[static_cast<std::size_t>(2 * f)] = -200;
    const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats out = poison(t * f);
      backend.swiglu(stream, {.x = tensor(x.data(), {t, 2 * f}), .y = tensor(out.data(), {t, f})});
      return out;
    });
    for (std::int64_t i = 0; i < t * f; ++i) {
      const double gate = x[i / f * 2 * f + i % f], up = x[i / f * 2 * f + f + i % f];
      const double expected = gate / (1 + std::exp(-gate)) * up;
      ASSERT_NEAR(y[i], expected, 1e-6 * std::max(1.0, std::abs(expected)));
    }
  }
}

TEST(Swiglu, BackwardMatchesFiniteDifferences) {
  const std::int64_t t = 3, f = 21;
  Rng rng(2);
  Floats x = normals(rng, t * 2 * f);
  const Floats dy = normals(rng, t * f);
  const Floats dx = same_everywhere([&](const Backend& backend, const Stream& stream) {
    Floats out = poison(t * 2 * f), in_place = x;
    SwigluBackward op{.dy = tensor(dy.data(), {t, f}),
                      .x = tensor(x.data(), {t, 2 * f}),
                      .dx = tensor(out.data(), {t, 2 * f})};
    backend.swiglu_backward(stream, op);
    op.x = op.dx = tensor(in_place.data(), {t, 2 * f});
    backend.swiglu_backward(stream, op);
    EXPECT_TRUE(same_bits(out, in_place));
    return out;
  });
  expect_gradient(x, dx, [&] {
    Floats y = poison(t * f);
    swiglu(Stream{}, {.x = tensor(x.data(), {t, 2 * f}), .y = tensor(y.data(), {t, f})});
    return dot(y, dy);
  });
}

TEST(Swiglu, InBf16ItRoundsOnce) {
  for (const std::int64_t f : {1, 17, 192}) {
    const std::int64_t t = 150;
    Rng rng(3);
    const Floats x = rounded(normals(rng, t * 2 * f, 3), DType::kBF16);
    const Floats dy = rounded(normals(rng, t * f), DType::kBF16);
    expect_rounded_once({DType::kBF16, DType::kBF16},
                        [&](DType dtype, const Backend& backend, const Stream& stream) {
                          const Stored xs(dtype, {t, 2 * f}, x), dys(dtype, {t, f}, dy);
                          const Stored y = Stored::poisoned(dtype, {t, f});
                          backend.swiglu(stream, {.x = xs, .y = y});
                          backend.swiglu_backward(stream, {.dy = dys, .x = xs, .dx = xs});
                          return std::vector{y.values(), xs.values()};
                        });
  }
}

}  // namespace
}  // namespace tandem::kernels
