#include "actors/exchange/state/journal_replay.h"

namespace tandem::exchange {

void JournalReplay::take(const JournalEntry& entry) {
  if (differs_at_) return;
  ++events_;
  if (const auto* hashed = std::get_if<StateHashed>(&entry.event)) {
    if (hashed->hash != state_.hash()) {
      differs_at_ = events_;
      return;
    }
    ++hashes_;
  }
  state_.apply(entry.event);
}

}  // namespace tandem::exchange
