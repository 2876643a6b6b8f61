// The times at which an engine's sequences came, ran and got their tokens, and what each time adds
// to the engine's histograms. Times are observed and decide nothing. An engine whose model is in a
// server sees no tokens come, and fills `queue` and `request` alone.
//
// Of any other engine, at every moment, whatever was cancelled or computed anew:
//   ST-1  Each token that was generated is in one histogram: the first of its sequence in
//         `first_token` (and `prefill`), any other in `token`.
//   ST-2  `queue` has every sequence that ever ran; `decode` and `request` have those that ended.
//
// A position that is computed anew after a preemption is not counted as a token: the next token
// counts the whole gap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "actors/messages/latencies.h"
#include "runtime/base/clock.h"

namespace tandem::rollout {

struct SequenceTimes {
  Time submitted;
  std::optional<Time> first_run, first_token;
  Time last_token;
};

// `times` belong to one sequence, or to `sequences` of them that share a prompt and run from now
// on.
void note_first_run(messages::Latencies& latencies, SequenceTimes& times, Time now,
                    std::uint64_t sequences);
void note_token(messages::Latencies& latencies, SequenceTimes& times, Time now);
void note_end(messages::Latencies& latencies, const SequenceTimes& times);  // after its last token

// `bounds` are the histogram's own.
void observe(messages::Histogram& histogram, std::span<const double> bounds, double value,
             std::uint64_t count = 1);

}  // namespace tandem::rollout
