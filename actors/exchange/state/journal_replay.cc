#include "actors/exchange/state/journal_replay.h"

#include "actors/exchange/state/misfit.h"

namespace tandem::exchange {

void JournalReplay::take(const JournalEntry& entry) {
  if (differs_at_ || misfit_) return;
  ++events_;
  if (const auto* hashed = std::get_if<StateHashed>(&entry.event)) {
    if (hashed->hash != state_.hash()) {
      differs_at_ = events_;
      return;
    }
    ++hashes_;
  }
  misfit_ = misfit(state_.facts(), entry.event);
  if (!misfit_) state_.apply(entry.event);
}

Result<void> JournalReplay::contradiction() const {
  const std::string place = "event " + std::to_string(events_) + " of the journal" +
                            (from_image_ ? ", counted from its last image" : "");
  const char* const help =
      "the journal is damaged; the run can go on from its last checkpoint (--resume)";
  if (misfit_)
    return Error{ErrorCode::kInvalid, "an event contradicts those before it: " + *misfit_, place,
                 help};
  if (differs_at_)
    return Error{ErrorCode::kInvalid, "the events give another state than the run had", place,
                 help};
  return {};
}

}  // namespace tandem::exchange
