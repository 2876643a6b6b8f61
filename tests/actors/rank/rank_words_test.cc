#include "actors/rank/rank_words.h"

#include <gtest/gtest.h>

namespace tandem::rank {
namespace {

TEST(RankWords, are_read_from_the_text_of_the_variable) {
  const auto words = split_rank_words(
      "job-1/counter/0\x1f"
      "7\x1f"
      "0\x1fipc:///run/sock/link\x1f\x1f\x1f\x1f"
      "41\x1f"
      "12");
  ASSERT_EQ(words.size(), 9u);
  const auto read = parse_rank_words(words);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->id.actor, "job-1/counter/0");
  EXPECT_EQ(read->id.incarnation, Incarnation{7});
  EXPECT_EQ(read->network.controller.to.path, "/run/sock/link");
  EXPECT_EQ(read->network.bind, "");
  EXPECT_EQ(read->parent, 41);
  EXPECT_EQ(read->alone_max, std::chrono::seconds(12)) << "before it has met a controller";
}

TEST(RankWords, that_are_missing_or_no_numbers_are_refused) {
  EXPECT_FALSE(parse_rank_words(split_rank_words("")));
  auto words = split_rank_words(
      "a/b/0\x1fx\x1f"
      "0\x1fipc:///s\x1f\x1f\x1f\x1f"
      "41\x1f"
      "300");
  EXPECT_EQ(parse_rank_words(words).error().code, ErrorCode::kInvalid);
  words[1] = "1";
  EXPECT_TRUE(parse_rank_words(words));
  for (const char* alone : {"", "-1", "9223372036854775807", "12s"}) {
    words[8] = alone;
    EXPECT_EQ(parse_rank_words(words).error().code, ErrorCode::kInvalid) << alone;
  }
  words[8] = "300";
  words[6] = "7420-7499";
  EXPECT_EQ(parse_rank_words(words)->network.ports, (link::PortRange{7420, 7499}));
  words[6] = "7420";
  EXPECT_EQ(parse_rank_words(words).error().code, ErrorCode::kInvalid);
  words[6] = "";
  words[3] = "nowhere";
  EXPECT_EQ(parse_rank_words(words).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::rank
