// Reads a run's journal as the run lived it: applies each event that fits, and compares the state
// with each hash that the run journalled. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "actors/exchange/state/durable_state.h"
#include "runtime/base/result.h"

namespace tandem::exchange {

// Give take() all entries of a journal in their order, or those after an image.
class JournalReplay {
 public:
  JournalReplay() = default;
  explicit JournalReplay(RunFacts image) : state_(std::move(image)), from_image_(true) {}

  // Once a hash differs, or an event does not fit, nothing more is applied: later events need not
  // fit such a state.
  void take(const JournalEntry& entry);

  const DurableState& state() const { return state_; }
  std::int64_t events() const { return events_; }  // taken
  std::int64_t hashes() const { return hashes_; }  // compared, and equal
  // The number of the first event whose hash was not the state's, from 1.
  std::optional<std::int64_t> differs_at() const { return differs_at_; }
  // Why the events are no run's, with the place of the first that contradicts those before it, and
  // what to do; success: they may be one's.
  Result<void> contradiction() const;

 private:
  DurableState state_;
  bool from_image_ = false;
  std::int64_t events_ = 0, hashes_ = 0;
  std::optional<std::int64_t> differs_at_;
  std::optional<std::string> misfit_;  // of event number events_
};

}  // namespace tandem::exchange
