// The schema of wired types: everything that decides how a message is encoded is in the text.
#include "runtime/wire/schema.h"

#include <gtest/gtest.h>

#include "runtime/actor/ref.h"

namespace schema_example {

enum class Color : std::uint8_t { kRed, kGreen };
TANDEM_WIRE_ENUM(Color, kRed, kGreen)

struct Inner {
  Color color = Color::kRed;
  std::vector<std::string> names;
};
TANDEM_WIRE(Inner, color, names)

struct Add {
  std::int64_t amount = 0;
  using Reply = Inner;
};
TANDEM_WIRE(Add, amount)

struct Reset {};
TANDEM_WIRE_EMPTY(Reset)

struct Everything {
  bool yes = false;
  std::optional<double> maybe;
  tandem::GroupId group;
  tandem::Time at;
  tandem::Duration during{};
  std::variant<std::monostate, std::uint32_t> either;
  std::map<std::string, float> weights;
  std::vector<std::byte> bytes;
};
TANDEM_WIRE(Everything, yes, maybe, group, at, during, either, weights, bytes)

}  // namespace schema_example

namespace tandem::wire {
namespace {

using namespace schema_example;

TEST(Schema, names_every_field_and_its_kind) {
  EXPECT_EQ((wire_schema<Inner, Reset>()), "Inner(color:e2,names:*s);Reset();");
  EXPECT_EQ(wire_schema<Everything>(),
            "Everything(yes:b,maybe:?f8,group:#u8,at:t,during:d,either:<0|u4>,weights:%f4,"
            "bytes:*y);");
}

TEST(Schema, an_inbox_is_its_alternatives_in_order_with_the_replies_of_asks) {
  EXPECT_EQ((wire_schema<std::variant<actor::Ask<Add>, Reset>>()),
            "<ask Add(amount:i8)->Inner(color:e2,names:*s)|Reset()>;");
  EXPECT_NE((schema_hash(wire_schema<std::variant<actor::Ask<Add>, Reset>>())),
            (schema_hash(wire_schema<std::variant<Reset, actor::Ask<Add>>>())));
  EXPECT_EQ(schema_hash("").size(), 16u);
}

}  // namespace
}  // namespace tandem::wire
