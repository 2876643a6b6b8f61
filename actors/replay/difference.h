// How a batch that was recorded differs from what the journal says of it. Pure.
#pragma once

#include <optional>
#include <string>

#include "actors/replay/journal_steps.h"
#include "actors/runs/batch_log.h"

namespace tandem::replay {

// The first difference, as a sentence without a full stop: another group, an order, a score to the
// bit, or a payload whose bytes have another checksum. nullopt: there is none.
std::optional<std::string> difference(const JournalStep& journal,
                                      const runs::RecordedBatch& recorded);

}  // namespace tandem::replay
