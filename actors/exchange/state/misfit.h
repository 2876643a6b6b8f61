// Whether an event can follow in a run that stands as it does: the conditions under which
// DurableState::apply() may take it. The exchange records no other event, and apply() CHECKs that.
// A reader asks first, since the rows of a file may be whole and contradict each other. Pure.
#pragma once

#include <optional>
#include <string>

#include "actors/exchange/state/journal_event.h"
#include "actors/exchange/state/run_facts.h"

namespace tandem::exchange {

// Why the event does not fit, as a clause for people; nullopt: it fits. O(log groups), but for
// events of a whole batch or run.
std::optional<std::string> misfit(const RunFacts& facts, const JournalEvent& event);

}  // namespace tandem::exchange
