#include "actors/translate/shell_arithmetic.h"

#include <gtest/gtest.h>

namespace tandem::translate {
namespace {

std::optional<std::int64_t> computed(std::string_view text) {
  return arithmetic(text, [](const std::string& name) -> std::optional<std::int64_t> {
    if (name == "prompt") return 2048;
    if (name == "answer") return 8192;
    return {};
  });
}

TEST(ShellArithmetic, ComputesAsBashDoes) {
  EXPECT_EQ(computed("1024 * 2"), 2048);
  EXPECT_EQ(computed("(prompt + answer) * 2"), 20480);
  EXPECT_EQ(computed("$prompt + ${answer}"), 10240);
  EXPECT_EQ(computed("7 / 2 - 10 % 4"), 1);
  EXPECT_EQ(computed("2 ** 3 ** 2"), 512);
  EXPECT_EQ(computed("-(2 - 5)"), 3);
  EXPECT_EQ(computed(" 5 "), 5);
}

TEST(ShellArithmetic, AnythingElseIsNotKnown) {
  for (const char* text :
       {"", "1 +", "unknown + 1", "1 << 3", "a = 3", "1 / 0", "1 % 0", "(1", "1)",
        "9223372036854775807 + 1", "2 ** 63", "3 ** 64", "x y", "1.5", "0x10"})
    EXPECT_EQ(computed(text), std::nullopt) << text;
  EXPECT_EQ(computed(std::string(10000, '(') + "1" + std::string(10000, ')')), std::nullopt);
  EXPECT_EQ(computed(std::string(10000, '-') + "1"), std::nullopt);
}

}  // namespace
}  // namespace tandem::translate
