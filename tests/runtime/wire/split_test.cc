#include "runtime/wire/split.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace split_example {

struct Letter {
  std::string to;
  std::vector<std::string> lines;
};
TANDEM_WIRE(Letter, to, lines)

}  // namespace split_example

namespace tandem::wire {
namespace {

using split_example::Letter;

TEST(Split, PartsFitAndKeepTheOrder) {
  for_seeds(100, [](std::uint64_t seed) {
    Rng rng(seed);
    Letter letter{.to = "a", .lines = {}};
    for (std::uint64_t i = rng.below(60); i > 0; --i)
      letter.lines.push_back(std::string(rng.below(90), static_cast<char>('a' + i % 20)));
    const std::uint64_t bytes_max = 120 + rng.below(400);
    std::vector<std::string> lines;
    for (const Letter& part : split(letter, &Letter::lines, bytes_max)) {
      EXPECT_EQ(part.to, "a");
      EXPECT_LE(encode(part).size(), bytes_max);
      lines.insert(lines.end(), part.lines.begin(), part.lines.end());
    }
    EXPECT_EQ(lines, letter.lines);
  });
}

TEST(Split, WhatFitsIsOneMessageAndSoIsAnEmptyList) {
  const Letter letter{"a", {"b", "c"}};
  EXPECT_EQ(split(letter, &Letter::lines, ~std::uint64_t{0}).size(), 1u);
  const auto empty = split(Letter{"a", {}}, &Letter::lines, 10);
  ASSERT_EQ(empty.size(), 1u);
  EXPECT_TRUE(empty[0].lines.empty());
}

TEST(Split, AnItemThatIsTooLargeTravelsAlone) {
  const auto parts = split(Letter{"a", {"b", std::string(500, 'c'), "d"}}, &Letter::lines, 100);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].lines.size(), 1u);
}

}  // namespace
}  // namespace tandem::wire
