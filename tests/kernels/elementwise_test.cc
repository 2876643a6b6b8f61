#include "kernels/ops/elementwise.h"

#include <gtest/gtest.h>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using runtime::tensor;

TEST(Elementwise, AddAndScale) {
  for (const std::int64_t n : {1, 16, 17, 1000, 70000}) {
    Rng rng(1);
    const Floats x = normals(rng, n), before = normals(rng, n);
    const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats out = before;
      backend.add(stream, {.x = tensor(x.data(), {n}), .y = tensor(out.data(), {n})});
      backend.scale(stream, {.y = tensor(out.data(), {n}), .factor = 0.3f});
      return out;
    });
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], (before[i] + x[i]) * 0.3f);
  }
}

}  // namespace
}  // namespace tandem::kernels
