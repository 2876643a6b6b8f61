#include "runtime/device/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::device {
namespace {

using Widen = float (*)(std::uint16_t);
using Narrow = std::uint16_t (*)(float);

struct Format {
  const char* name;
  DType dtype;
  Widen widen;
  Narrow narrow;
};

constexpr Format kFormats[] = {{"bf16", DType::kBF16, bf16_to_f32, f32_to_bf16},
                               {"f16", DType::kF16, f16_to_f32, f32_to_f16}};

TEST(DType, EveryNarrowValueSurvivesTheRoundTrip) {
  for (const Format& format : kFormats) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto narrow = static_cast<std::uint16_t>(bits);
      const float wide = format.widen(narrow);
      if (std::isnan(wide)) {
        EXPECT_TRUE(std::isnan(format.widen(format.narrow(wide)))) << format.name << bits;
      } else {
        ASSERT_EQ(format.narrow(wide), narrow) << format.name << bits;
      }
    }
  }
}

// Between two neighbours the nearer one wins, and the even one at the middle.
TEST(DType, RoundsToNearestEven) {
  for (const Format& format : kFormats) {
    const std::uint16_t infinity = format.narrow(std::numeric_limits<float>::infinity());
    for (std::uint16_t low = 0; low + 1 < infinity; ++low) {
      const auto high = static_cast<std::uint16_t>(low + 1);
      const float a = format.widen(low), b = format.widen(high);
      const double middle = (static_cast<double>(a) + static_cast<double>(b)) / 2;
      const auto at = static_cast<float>(middle);
      if (static_cast<double>(at) != middle) continue;  // f32 has no value there
      ASSERT_EQ(format.narrow(at), low % 2 == 0 ? low : high) << format.name << low;
      ASSERT_EQ(format.narrow(std::nextafter(at, a)), low) << format.name << low;
      ASSERT_EQ(format.narrow(std::nextafter(at, b)), high) << format.name << low;
      ASSERT_EQ(format.narrow(-at), 0x8000u | (low % 2 == 0 ? low : high)) << format.name << low;
    }
  }
}

TEST(DType, KnownValues) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_f16(1.0f), 0x3c00);
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(0x1p-24f), 0x0001);
  EXPECT_EQ(f32_to_f16(0x1p-26f), 0x0000);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(DType, BulkConversionAgreesAndNeedsNoAlignment) {
  Rng rng(1);
  std::vector<float> values(37), back(values.size());
  for (float& value : values) value = static_cast<float>(rng.normal());
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    std::vector<std::byte> bytes(values.size() * size_bytes(dtype) + 1);
    const std::span<std::byte> odd = std::span(bytes).subspan(1);
    from_f32(values, dtype, odd);
    to_f32(odd, dtype, back);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float expected = dtype == DType::kF32    ? values[i]
                             : dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(values[i]))
                                                     : f16_to_f32(f32_to_f16(values[i]));
      EXPECT_EQ(back[i], expected) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace tandem::device
