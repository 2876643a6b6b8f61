#include "runtime/base/enum_names.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tandem {
namespace {

enum class Colour { kRed, kDarkBlue, kUnnamed };
constexpr auto enum_names(Colour) {
  using enum Colour;
  return enum_name_rows<Colour>({{kRed, "red"}, {kDarkBlue, "dark_blue"}, {kDarkBlue, "navy"}});
}

TEST(EnumNames, TheFirstNameOfAValueIsPrintedAndEachIsRead) {
  EXPECT_EQ(spelling(Colour::kDarkBlue), "dark_blue");
  EXPECT_EQ(spelt<Colour>("dark_blue"), Colour::kDarkBlue);
  EXPECT_EQ(spelt<Colour>("navy"), Colour::kDarkBlue);
  EXPECT_EQ(spelt<Colour>("red"), Colour::kRed);
}

TEST(EnumNames, AnUnknownNameHasNoValue) {
  for (const char* name : {"", "Red", "red ", "dark", "unnamed"})
    EXPECT_EQ(spelt<Colour>(name), std::nullopt) << name;
}

TEST(EnumNames, NamesAreInTheOrderOfTheirRows) {
  const auto names = spellings<Colour>();
  EXPECT_EQ(std::vector(names.begin(), names.end()),
            (std::vector<std::string_view>{"red", "dark_blue", "navy"}));
}

TEST(EnumNamesDeathTest, AValueWithoutANameCannotBePrinted) {
  EXPECT_DEATH((void)spelling(Colour::kUnnamed), "CHECK|false");
}

}  // namespace
}  // namespace tandem
