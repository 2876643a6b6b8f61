// The mark of a node that takes no new actors, in the records, the journal and the events. Who sets
// it and why: cordon.h and automatic_cordon.h.
#pragma once

#include <string>

#include "actors/controller/turn.h"

namespace tandem::controller {

inline constexpr const char* kAutomatic = "automatic: ";  // begins the reason of such a mark

void mark_cordoned(Turn& turn, const std::string& name, NodeRecord& node, const std::string& why);
bool is_automatic(const NodeRecord& node);  // it is marked by the controller itself
// Takes the mark from a node that has it, and forgets the deaths on it.
void unmark_cordoned(Turn& turn, const std::string& name, NodeRecord& node);

}  // namespace tandem::controller
