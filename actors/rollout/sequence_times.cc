#include "actors/rollout/sequence_times.h"

#include <algorithm>

namespace tandem::actors {

void observe(Histogram& histogram, std::span<const double> bounds, double value,
             std::uint64_t count) {
  const auto bucket = std::ranges::lower_bound(bounds, value) - bounds.begin();
  histogram.counts[static_cast<std::size_t>(bucket)] += count;
  histogram.sum += value * static_cast<double>(count);
}

void note_first_run(Latencies& latencies, SequenceTimes& times, Time now, std::uint64_t sequences) {
  times.first_run = now;
  observe(latencies.queue, kRequestBounds, seconds(now - times.submitted), sequences);
}

void note_token(Latencies& latencies, SequenceTimes& times, Time now) {
  if (times.first_token) {
    observe(latencies.token, kTokenBounds, seconds(now - times.last_token));
  } else {
    times.first_token = now;
    observe(latencies.first_token, kFirstTokenBounds, seconds(now - times.submitted));
    observe(latencies.prefill, kRequestBounds, seconds(now - *times.first_run));
  }
  times.last_token = now;
}

void note_end(Latencies& latencies, const SequenceTimes& times) {
  observe(latencies.decode, kRequestBounds, seconds(times.last_token - *times.first_token));
  observe(latencies.request, kRequestBounds, seconds(times.last_token - times.submitted));
}

}  // namespace tandem::actors
