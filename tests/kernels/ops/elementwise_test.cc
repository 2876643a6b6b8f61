#include "kernels/ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

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

TEST(Elementwise, InBf16EachOperationRoundsOnce) {
  for (const std::int64_t n : {1, 16, 17, 1000, 70000}) {
    Rng rng(3);
    const Floats x = rounded(normals(rng, n), DType::kBF16);
    const Floats before = rounded(normals(rng, n), DType::kBF16);
    expect_rounded_once({DType::kBF16, DType::kBF16}, [&](DType dtype, const Backend& backend,
                                                          const Stream& stream) {
      const Stored xs(dtype, {n}, x), sum(dtype, {n}, before), scaled(dtype, {n}, before);
      backend.add(stream, {.x = xs, .y = sum});
      backend.scale(stream, {.y = scaled, .factor = 0.3f});
      return std::vector{sum.values(), scaled.values()};
    });
  }
}

// Converts both ways and copies either dtype: with dtype.h's rounding, however the range is cut.
TEST(Elementwise, ConvertsBetweenStorageAndArithmetic) {
  for (const std::int64_t n : {0, 1, 17, 70000}) {
    Rng rng(2);
    Floats x = normals(rng, n);
    const float special[] = {1.00390625f,  // a tie, to even: down
                             1.01171875f,  // and up
                             -0.0f,       3.4e38f,
                             INFINITY,    std::numeric_limits<float>::quiet_NaN()};
    for (std::size_t i = 0; i < std::size(special) && i < x.size(); ++i) x[i] = special[i];
    same_everywhere([&](const Backend& backend, const Stream& stream) {
      std::vector<std::uint16_t> narrow(x.size()), copy(x.size());
      Floats wide = poison(n), same = poison(n);
      const auto bf16 = [&](std::vector<std::uint16_t>& bits) {
        return tensor(static_cast<void*>(bits.data()), DType::kBF16, {n});
      };
      backend.convert(stream, {.x = tensor(x.data(), {n}), .y = bf16(narrow)});
      backend.convert(stream, {.x = bf16(narrow), .y = bf16(copy)});
      backend.convert(stream, {.x = bf16(copy), .y = tensor(wide.data(), {n})});
      backend.convert(stream, {.x = tensor(x.data(), {n}), .y = tensor(same.data(), {n})});
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(narrow[i], device::f32_to_bf16(x[i]));
      EXPECT_EQ(narrow, copy);
      EXPECT_TRUE(same_bits(same, x));
      return wide;
    });
  }
}

TEST(Elementwise, NoOtherDtypeIsComputedIn) {
  std::uint16_t bits[4] = {};
  const TensorView y = tensor(static_cast<void*>(bits), DType::kF16, {4});
  EXPECT_DEATH(scale(Stream{}, {.y = y, .factor = 2}), "computes");
}

TEST(Elementwise, ConvertKnowsTwoDtypesAndNoPlaceInPlace) {
  std::uint32_t bits[4] = {};
  const auto view = [&](DType dtype) { return tensor(static_cast<void*>(bits), dtype, {4}); };
  std::uint32_t other[4] = {};
  const TensorView y = tensor(static_cast<void*>(other), DType::kF32, {4});
  EXPECT_DEATH(convert(Stream{}, {.x = view(DType::kF16), .y = y}), "is_f32_or_bf16");
  EXPECT_DEATH(convert(Stream{}, {.x = view(DType::kI32), .y = y}), "is_f32_or_bf16");
  EXPECT_DEATH(convert(Stream{}, {.x = view(DType::kF32), .y = view(DType::kBF16)}), "data");
}

}  // namespace
}  // namespace tandem::kernels
