// How long an engine's sequences take, as histograms under vLLM's names and with vLLM's bounds
// (vllm/v1/metrics/loggers.py), so that its dashboards show Tandem's rollouts as well. A request is
// one completion: a group has n of them. Messages carry counts alone: both sides have the bounds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/wire/fields.h"

namespace tandem::actors {

// Upper bounds in seconds, ascending; a value that is a bound counts below it.
inline constexpr auto kFirstTokenBounds =
    std::to_array<double>({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                           1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560});
inline constexpr auto kTokenBounds =
    std::to_array<double>({0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5,
                           7.5, 10, 20, 40, 80});
inline constexpr auto kRequestBounds = std::to_array<double>(
    {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680});

struct Histogram {
  // [bounds + 1]: the values up to each bound and above the one before; last, those above all.
  std::vector<std::uint64_t> counts;
  double sum = 0;  // of the values, seconds
};
TANDEM_WIRE(Histogram, counts, sum)

template <std::size_t N>
Histogram empty_histogram(const std::array<double, N>&) {
  return {.counts = std::vector<std::uint64_t>(N + 1)};
}

struct Latencies {                                             // since the engine's start
  Histogram queue = empty_histogram(kRequestBounds);           // submitted to first computed
  Histogram first_token = empty_histogram(kFirstTokenBounds);  // submitted to first token
  Histogram prefill = empty_histogram(kRequestBounds);         // first computed to first token
  Histogram token = empty_histogram(kTokenBounds);             // from one token to the next
  Histogram decode = empty_histogram(kRequestBounds);          // first token to last token
  Histogram request = empty_histogram(kRequestBounds);         // submitted to last token
};
TANDEM_WIRE(Latencies, queue, first_token, prefill, token, decode, request)

struct LatencyFamily {  // of /metrics
  const char* name;
  const char* help;
  std::span<const double> bounds;
  Histogram Latencies::*histogram;
};
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

}  // namespace tandem::actors
