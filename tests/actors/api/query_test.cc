#include "actors/api/query.h"

#include <gtest/gtest.h>

namespace tandem::api {
namespace {

constexpr QueryParameter kCount{
    .name = "count", .kind = QueryKind::kNumber, .bounds = {1, 600}, .usual = 10};
constexpr QueryParameter kSet{.name = "set", .kind = QueryKind::kFlag};
constexpr QueryParameter kTwoWords{.name = "words", .kind = QueryKind::kWords, .words_max = 2};

http::HttpRequest query_of(const std::string& query) {
  http::HttpRequest request{.method = "GET"};
  EXPECT_TRUE(http::split_target("/x?" + query, request)) << query;
  return request;
}

TEST(Query, ANumberIsWholeAndWithinItsBounds) {
  EXPECT_EQ(query_number(query_of(""), kCount).value(), 10);
  EXPECT_EQ(query_number(query_of("count="), kCount).value(), 10);
  EXPECT_EQ(query_number(query_of("count=600"), kCount).value(), 600);
  for (const char* const wrong : {"0", "601", "5x", "5.0", "-1", "99999999999999999999", "%205"}) {
    const auto number = query_number(query_of(std::string("count=") + wrong), kCount);
    ASSERT_FALSE(number.has_value()) << wrong;
    EXPECT_TRUE(number.error().message.ends_with(" is no whole number from 1 to 600"))
        << number.error().message;
  }
}

TEST(Query, AFlagIsSetByAnyValueButNo) {
  for (const char* const set : {"set", "set=", "set=1", "set=yes"})
    EXPECT_TRUE(query_flag(query_of(set), kSet)) << set;
  for (const char* const not_set : {"", "set=0", "set=false", "sets=1"})
    EXPECT_FALSE(query_flag(query_of(not_set), kSet)) << not_set;
}

TEST(Query, WordsAreBetweenCommas) {
  EXPECT_EQ(query_words(query_of("words=a%2Fb,,c"), kTwoWords).value(),
            (std::vector<std::string>{"a/b", "c"}));
  EXPECT_TRUE(query_words(query_of(""), kTwoWords)->empty());
  EXPECT_EQ(query_words(query_of("words=a,b,c"), kTwoWords).error().message,
            "words= names more than 2");
}

}  // namespace
}  // namespace tandem::api
