#include "actors/exchange/reward_extras.h"

#include <gtest/gtest.h>

namespace tandem::exchange {
namespace {

using Means = std::map<std::string, double>;

TEST(RewardExtras, ANumberHasTheMeanOfThoseThatHaveIt) {
  ExtraKeys keys;
  EXPECT_EQ(keys.means({R"({"format": 1, "ok": true, "pred": 42, "why": "a text"})",
                        R"({"format": 0.5, "ok": false, "two words": 3, "nested": {"x": 1}})", "",
                        "no JSON"}),
            (Means{{"format", 0.75}, {"ok", 0.5}, {"two_words", 3}}));
  EXPECT_EQ(keys.means({}), Means{}) << "each step has its own";
  EXPECT_FALSE(keys.left_out());
}

TEST(RewardExtras, BeyondTheLimitANumberIsLeftOutAloud) {
  ExtraKeys keys;
  std::string many = "{";
  for (std::size_t i = 0; i < kExtraKeysMax; ++i)
    many += (i > 0 ? ", \"n" : "\"n") + std::to_string(i) + "\": 1";
  EXPECT_EQ(keys.means({many + "}"}).size(), kExtraKeysMax);
  EXPECT_FALSE(keys.left_out());
  EXPECT_EQ(keys.means({R"({"n1": 2, "z": 1})"}), (Means{{"n1", 2}})) << "known names stay";
  EXPECT_EQ(keys.left_out(), "z");
  (void)keys.means({R"({"y": 1})"});
  EXPECT_FALSE(keys.left_out()) << "told once";
}

}  // namespace
}  // namespace tandem::exchange
