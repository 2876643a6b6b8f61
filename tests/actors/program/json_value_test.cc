#include "actors/program/json_value.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tandem::program {
namespace {

enum class Size : std::uint8_t { kSmall, kVeryLarge = 7 };
TANDEM_WIRE_ENUM(Size, kSmall, kVeryLarge)
struct Order {
  Size size = Size::kSmall;
  std::vector<Size> others;
};
TANDEM_WIRE(Order, size, others)

TEST(JsonValue, AnEnumIsTheNameOfItsEnumerator) {
  const Order order{.size = Size::kVeryLarge, .others = {Size::kSmall}};
  EXPECT_EQ(dump_json(json_detail::write(order)), R"({"others":["small"],"size":"very_large"})");
  Order back;
  ASSERT_TRUE(json_detail::read(json_detail::write(order), back, "order"));
  EXPECT_EQ(back.size, Size::kVeryLarge);
  EXPECT_EQ(back.others, std::vector{Size::kSmall});
}

TEST(JsonValue, AnEnumIsReadFromItsNumberAsWell) {
  Size size{};
  ASSERT_TRUE(json_detail::read(json_detail::json(7), size, "size"));
  EXPECT_EQ(size, Size::kVeryLarge);
}

TEST(JsonValue, WhatNamesNoEnumeratorIsRefusedWithTheNamesThatThereAre) {
  for (const json_detail::json& wrong :
       {json_detail::json("kSmall"), json_detail::json("large"), json_detail::json(1),
        json_detail::json(263), json_detail::json(7.5), json_detail::json(nullptr)}) {
    Size size{};
    const auto read = json_detail::read(wrong, size, "order.size");
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().message,
              "order.size: expected one of small, very_large, got " + dump_json(wrong));
    EXPECT_EQ(size, Size::kSmall);
  }
}

}  // namespace
}  // namespace tandem::program
