// Checks relations that hold between an engine's histograms at every moment, whatever was cancelled
// or preempted.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "actors/messages/latencies.h"

namespace tandem::messages {

inline std::uint64_t count_of(const Histogram& histogram) {
  return std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::uint64_t{0});
}

// ST-1, ST-2. `tokens` is the number of tokens that the engine has generated.
inline void expect_counts_fit(const Latencies& latencies, std::uint64_t tokens) {
  for (const LatencyFamily& family : kLatencyFamilies) {
    const Histogram& histogram = latencies.*family.histogram;
    EXPECT_EQ(histogram.counts.size(), family.bounds.size() + 1) << family.name;
    EXPECT_GE(histogram.sum, 0) << family.name;
  }
  const std::uint64_t first = count_of(latencies.first_token);
  EXPECT_EQ(first + count_of(latencies.token), tokens) << "ST-1";
  EXPECT_EQ(count_of(latencies.prefill), first) << "ST-1";
  EXPECT_GE(count_of(latencies.queue), first) << "ST-2";
  EXPECT_LE(count_of(latencies.request), first) << "ST-2";
  EXPECT_EQ(count_of(latencies.decode), count_of(latencies.request)) << "ST-2";
}

}  // namespace tandem::messages
