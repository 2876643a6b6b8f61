// How long the sequences of an engine take, as histograms with the names and bounds that vLLM uses
// (vllm/v1/metrics/loggers.py), so that dashboards made for vLLM also show Tandem's rollouts. A
// request, in these names, is one completion: a group has n of them. Messages carry only counts and
// sums, because both sides have the bounds from this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/wire/fields.h"

namespace tandem::messages {

// Upper bounds of the buckets in seconds, ascending. A value that equals a bound counts in the
// bucket below that bound.
// These measure the time from submission to the first token.
inline constexpr auto kFirstTokenBounds =
    std::to_array<double>({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                           1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560});
// The time from one token of a sequence to the next.
inline constexpr auto kTokenBounds =
    std::to_array<double>({0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5,
                           7.5, 10, 20, 40, 80});
// Whole requests and their parts.
inline constexpr auto kRequestBounds = std::to_array<double>(
    {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680});

struct Histogram {
  // [bounds + 1] not cumulative: entry i counts the values above bound i - 1 and up to bound i, and
  // the last entry counts the values above all bounds.
  std::vector<std::uint64_t> counts;
  double sum = 0;  // the sum of the values, in seconds
};
TANDEM_WIRE(Histogram, counts, sum)

// A histogram of the right size for these bounds, without any value.
template <std::size_t N>
Histogram empty_histogram(const std::array<double, N>&) {
  return {.counts = std::vector<std::uint64_t>(N + 1)};
}

// Everything measured since the engine's start. A sequence adds to a histogram when the span ends:
// to `queue` when it is first computed, to `request` when it has its last token.
struct Latencies {
  Histogram queue = empty_histogram(kRequestBounds);           // submitted to first computed
  Histogram first_token = empty_histogram(kFirstTokenBounds);  // submitted to first token
  Histogram prefill = empty_histogram(kRequestBounds);         // first computed to first token
  Histogram token = empty_histogram(kTokenBounds);             // from one token to the next
  Histogram decode = empty_histogram(kRequestBounds);          // first token to last token
  Histogram request = empty_histogram(kRequestBounds);         // submitted to last token
};
TANDEM_WIRE(Latencies, queue, first_token, prefill, token, decode, request)

// One histogram as /metrics shows it; actors/api/prometheus.cc goes through the table below.
struct LatencyFamily {
  const char* name;  // as Prometheus wants it, in seconds
  const char* help;
  std::span<const double> bounds;
  Histogram Latencies::*histogram;
};
// The families in the order of /metrics. The door also checks a rollout's histograms by this table:
// each must have as many counts as its bounds ask for.
inline constexpr auto kLatencyFamilies = std::to_array<LatencyFamily>({
    {"vllm:request_queue_time_seconds", "From submitted to first computed.", kRequestBounds,
     &Latencies::queue},
    {"vllm:time_to_first_token_seconds", "From submitted to the first token.", kFirstTokenBounds,
     &Latencies::first_token},
    {"vllm:request_prefill_time_seconds", "From first computed to the first token.", kRequestBounds,
     &Latencies::prefill},
    {"vllm:inter_token_latency_seconds", "From one token to the next.", kTokenBounds,
     &Latencies::token},
    {"vllm:request_decode_time_seconds", "From the first token to the last.", kRequestBounds,
     &Latencies::decode},
    {"vllm:e2e_request_latency_seconds", "From submitted to the last token.", kRequestBounds,
     &Latencies::request},
});

}  // namespace tandem::messages
