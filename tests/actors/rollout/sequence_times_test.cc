#include "actors/rollout/sequence_times.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/actors/messages/latency_counts.h"

namespace tandem::rollout {
namespace {

using namespace std::chrono_literals;

TEST(SequenceTimes, ValuesFallIntoTheBucketOfTheNextBound) {
  for (const messages::LatencyFamily& family : messages::kLatencyFamilies) {
    EXPECT_TRUE(std::ranges::is_sorted(family.bounds, std::ranges::less_equal{})) << family.name;
    messages::Latencies latencies;
    messages::Histogram& histogram = latencies.*family.histogram;
    observe(histogram, family.bounds, 0);
    observe(histogram, family.bounds, family.bounds.front(), 2);
    observe(histogram, family.bounds, family.bounds.front() * 1.01);
    observe(histogram, family.bounds, family.bounds.back());
    observe(histogram, family.bounds, family.bounds.back() * 2, 5);
    EXPECT_EQ(histogram.counts.front(), 3u) << family.name;
    EXPECT_EQ(histogram.counts[1], 1u) << family.name;
    EXPECT_EQ(*(histogram.counts.end() - 2), 1u) << family.name;
    EXPECT_EQ(histogram.counts.back(), 5u) << family.name;
    EXPECT_EQ(count_of(histogram), 10u) << family.name;
  }
}

TEST(SequenceTimes, ASequenceIsSeenFromItsSubmissionToItsEnd) {  // ST-1, ST-2
  messages::Latencies latencies;
  const Time start{};
  SequenceTimes times{.submitted = start};
  note_first_run(latencies, times, start + 400ms, 2);
  SequenceTimes other = times;
  note_token(latencies, times, start + 1000ms);
  expect_counts_fit(latencies, 1);
  EXPECT_EQ(count_of(latencies.request), 0u);
  note_token(latencies, other, start + 1000ms);
  note_token(latencies, times, start + 1500ms);
  note_end(latencies, times);
  expect_counts_fit(latencies, 3);
  EXPECT_EQ(count_of(latencies.queue), 2u) << "they share a prompt";
  EXPECT_DOUBLE_EQ(latencies.queue.sum, 0.8);
  EXPECT_DOUBLE_EQ(latencies.first_token.sum, 2.0);
  EXPECT_DOUBLE_EQ(latencies.prefill.sum, 1.2);
  EXPECT_DOUBLE_EQ(latencies.token.sum, 0.5);
  EXPECT_DOUBLE_EQ(latencies.decode.sum, 0.5);
  EXPECT_DOUBLE_EQ(latencies.request.sum, 1.5);
  EXPECT_EQ(count_of(latencies.request), 1u);
}

}  // namespace
}  // namespace tandem::rollout
