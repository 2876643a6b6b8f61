#include "actors/rollout/sequence_times.h"

#include <algorithm>

namespace tandem::rollout {

void observe(messages::Histogram& histogram, std::span<const double> bounds, double value,
             std::uint64_t count) {
  const auto bucket = std::ranges::lower_bound(bounds, value) - bounds.begin();
  histogram.counts[static_cast<std::size_t>(bucket)] += count;
  histogram.sum += value * static_cast<double>(count);
}

void note_first_run(messages::Latencies& latencies, SequenceTimes& times, Time now,
                    std::uint64_t sequences) {
  times.first_run = now;
  observe(latencies.queue, messages::kRequestBounds, seconds(now - times.submitted), sequences);
}

void note_token(messages::Latencies& latencies, SequenceTimes& times, Time now) {
  if (times.first_token) {
    observe(latencies.token, messages::kTokenBounds, seconds(now - times.last_token));
  } else {
    times.first_token = now;
    observe(latencies.first_token, messages::kFirstTokenBounds, seconds(now - times.submitted));
    observe(latencies.prefill, messages::kRequestBounds, seconds(now - *times.first_run));
  }
  times.last_token = now;
}

void note_end(messages::Latencies& latencies, const SequenceTimes& times) {
  observe(latencies.decode, messages::kRequestBounds,
          seconds(times.last_token - *times.first_token));
  observe(latencies.request, messages::kRequestBounds, seconds(times.last_token - times.submitted));
}

}  // namespace tandem::rollout
