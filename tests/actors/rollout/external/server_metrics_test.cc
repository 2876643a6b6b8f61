#include "actors/rollout/external/server_metrics.h"

#include <gtest/gtest.h>

namespace tandem::rollout {
namespace {

constexpr MetricName kNames[] = {{"e:tokens_total", "", &ServerMetrics::generation_tokens},
                                 {"e:running", "", &ServerMetrics::waiting},
                                 {"e:usage", "", &ServerMetrics::kv_cache_usage}};

TEST(ServerMetrics, SumsTheSeriesOfANameAndTakesTheLargestUsage) {
  const auto read = read_metrics(
      "# HELP e:tokens_total Tokens. 7\n# TYPE e:tokens_total counter\n"
      "e:tokens_total{engine=\"0\",model_name=\"a b\"} 12.0\n"
      "e:tokens_total{engine=\"1\"} 1.5e+1\n"
      "e:tokens_total_created{engine=\"0\"} 1.7e9\n"
      "e:running 3\n"
      "e:usage{engine=\"0\"} 0.25\ne:usage{engine=\"1\"} 0.5\n",
      kNames);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->generation_tokens, 27);
  EXPECT_EQ(read->waiting, 3);
  EXPECT_EQ(read->kv_cache_usage, 0.5);
  EXPECT_EQ(read->preemptions, 0);
}

TEST(ServerMetrics, ASeriesIsChosenByItsLabelAndMayCountTwice) {
  constexpr MetricName kByLabel[] = {
      {"e:tokens", "mode=\"decode\"", &ServerMetrics::generation_tokens},
      {"e:tokens", "mode=\"prefill\"", &ServerMetrics::prompt_tokens},
      {"e:tokens", "mode=\"prefill\"", &ServerMetrics::prefix_cache_queries}};
  const auto read = read_metrics(
      "e:tokens{mode=\"decode\",tp=\"0\"} 5\ne:tokens{tp=\"0\",mode=\"prefill\"} 7\n"
      "e:tokens{mode=\"other\"} 9\n",
      kByLabel);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->generation_tokens, 5);
  EXPECT_EQ(read->prompt_tokens, 7);
  EXPECT_EQ(read->prefix_cache_queries, 7);
}

TEST(ServerMetrics, AFigureThatCannotBeIsTheLargestThatIsKept) {
  const auto read = read_metrics("e:running 1e300\ne:running 1e300\n", kNames);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->waiting, kFigureMax);
}

TEST(ServerMetrics, ATextOfAnotherKindIsNone) {
  for (const char* text : {"", "\n\n", "<html></html>", "other 3\n", "e:running\n", "e:running x\n",
                           "e:running NaN\n", "e:running -4\n", " 5\n"})
    EXPECT_FALSE(read_metrics(text, kNames)) << text;
}

}  // namespace
}  // namespace tandem::rollout
