// A run as people and scripts ask about it: status, waits, groups. Figures are taken from the facts
// and the run's statistics when somebody asks; nothing here changes a decision.
#pragma once

#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// Follows the error of a full disk.
inline constexpr const char* kNothingIsLost =
    "nothing is lost, and the run goes on once there is room";

messages::ExchangeReport report_of(const RunView& view);
// Says, for people, that a learner repeated steps and got other weights. Call it only where that
// has happened.
std::string lineage_text(const RunView& view);
// That the newest batch has groups which the filter is for, in words for people.
std::string kept_text(const RunView& view);
std::vector<messages::GroupView> groups_of(const RunView& view, const messages::GetGroups& asked);
messages::JobStatus status_of(const RunView& view);

}  // namespace tandem::exchange
