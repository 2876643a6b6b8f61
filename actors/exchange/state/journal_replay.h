// Reads a run's journal as the run lived it: applies each event, and compares the state with each
// hash that the run journalled. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/exchange/state/durable_state.h"

namespace tandem::exchange {

// Give take() all entries of a journal in their order.
class JournalReplay {
 public:
  // Once a hash differs nothing more is applied: later events need not fit such a state.
  void take(const JournalEntry& entry);

  const DurableState& state() const { return state_; }
  std::int64_t events() const { return events_; }  // taken
  std::int64_t hashes() const { return hashes_; }  // compared, and equal
  // The number of the first event whose hash was not the state's, from 1.
  std::optional<std::int64_t> differs_at() const { return differs_at_; }

 private:
  DurableState state_;
  std::int64_t events_ = 0, hashes_ = 0;
  std::optional<std::int64_t> differs_at_;
};

}  // namespace tandem::exchange
