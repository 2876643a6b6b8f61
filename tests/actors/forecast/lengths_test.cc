#include "actors/forecast/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tandem::forecast {
namespace {

constexpr std::int32_t kGroups = 4000, kCompletions = 8;

std::vector<double> drawn(const std::string& text, std::int32_t most = kLengthMost) {
  const auto lengths = Lengths::parse(text);
  EXPECT_TRUE(lengths) << text;
  std::vector<double> all;
  for (std::uint64_t seed = 0; seed < kGroups; ++seed)
    for (const std::int32_t tokens : lengths->draw(seed, kCompletions, most)) all.push_back(tokens);
  std::ranges::sort(all);
  return all;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(Lengths, AConstantIsItself) {
  const auto all = drawn("constant(256)");
  EXPECT_EQ(all.front(), 256);
  EXPECT_EQ(all.back(), 256);
}

TEST(Lengths, UniformHasBothEnds) {
  const auto all = drawn("uniform(3,8)");
  EXPECT_EQ(all.front(), 3);
  EXPECT_EQ(all.back(), 8);
  EXPECT_NEAR(mean_of(all), 5.5, 0.05);
}

// With a sigma of ln(10) / 2.326 the 99th percentile is ten times the median.
TEST(Lengths, LogNormalHasItsMeanAndItsTail) {
  const auto all = drawn("lognormal(1000,0.99,1000000)");
  EXPECT_NEAR(mean_of(all), 1000, 25);
  EXPECT_NEAR(all[all.size() / 2], 1000 / std::exp(0.99 * 0.99 / 2), 20);
  EXPECT_NEAR(all[all.size() * 99 / 100] / all[all.size() / 2], 10, 0.8);
}

TEST(Lengths, AreCutAtTheirOwnMostAndAtTheJobs) {
  EXPECT_EQ(drawn("lognormal(1000,0.99,2000)").back(), 2000);
  EXPECT_EQ(drawn("lognormal(1000,0.99,2000)", 500).back(), 500);
}

TEST(Lengths, RecordedGroupsComeWhole) {
  const Lengths lengths = Lengths::recorded({{1, 2, 3}, {10, 20, 30}});
  EXPECT_EQ(lengths.text(), "2 groups that were recorded");
  bool first = false, second = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto group = lengths.draw(seed, 3, kLengthMost);
    first = first || group == std::vector<std::int32_t>{1, 2, 3};
    second = second || group == std::vector<std::int32_t>{10, 20, 30};
    EXPECT_TRUE(group[0] == 1 || group[0] == 10);
    EXPECT_EQ(lengths.draw(seed, 3, kLengthMost), group);  // a function of the seed
  }
  EXPECT_TRUE(first && second);
  EXPECT_EQ(lengths.draw(1, 5, kLengthMost).size(), 5u);
}

TEST(Lengths, OtherTextsAreRefused) {
  for (const char* const text :
       {"", "lognormal", "lognormal()", "lognormal(1,2)", "lognormal(1,2,3,4)", "lognormal(0,1,10)",
        "lognormal(10,-1,10)", "lognormal(nan,1,10)", "lognormal(10,inf,10)", "uniform(8,3)",
        "uniform(0,3)", "constant(0)", "constant(1e9)", "constant(1) ", "constant(1,)",
        "poisson(3)"}) {
    const auto parsed = Lengths::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(parsed.error().help.empty());
  }
}

}  // namespace
}  // namespace tandem::forecast
