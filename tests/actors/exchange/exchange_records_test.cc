#include "actors/exchange/exchange_records.h"

#include <gtest/gtest.h>

namespace tandem::exchange {
namespace {

TEST(ExchangeRecords, GiveBackWhatWasAdded) {
  const std::pair<std::string, std::string> given[] = {
      {"1+1=", R"({"prompt": "1+1=", "answer": "2"})"},
      {"a\nb", R"({"prompt": "a\nb"})"},  // escaped in the line
      {"", R"({"prompt": ""})"},
      {"not in it", ""},
      {std::string(5 << 20, 'p'), std::string(6 << 20, 'd')},  // more than a block
      {"after", "after"},
  };
  ExchangeRecords records;
  EXPECT_TRUE(records.empty());
  for (const auto& [prompt, data] : given) records.add(prompt, data);
  ASSERT_EQ(records.size(), std::size(given));
  const ExchangeRecords copy = records;
  for (std::size_t i = 0; i < std::size(given); ++i) {
    EXPECT_EQ(copy[i].prompt, given[i].first);
    EXPECT_EQ(copy[i].data, given[i].second);
  }
}

// 24 bytes for each record find it, and a prompt that stands in its line takes no more.
TEST(ExchangeRecords, TakeLittleMoreMemoryThanTheirLines) {
  const std::string prompt = "36+01=";
  const std::string line = R"({"prompt": "36+01=", "answer": "037"})";
  ExchangeRecords records;
  constexpr std::size_t kRecords = 500'000;
  for (std::size_t i = 0; i < kRecords; ++i) records.add(prompt, line);
  EXPECT_LT(records.memory_bytes(), kRecords * (line.size() + 2 * 24) + (std::size_t{4} << 20));
}

}  // namespace
}  // namespace tandem::exchange
