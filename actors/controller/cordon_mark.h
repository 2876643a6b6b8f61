// The marks of nodes and GPUs that take no new actors, in the records, the journal and the events.
// Who sets them and why: cordon.h and automatic_cordon.h. Only the controller itself marks GPUs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "actors/controller/turn.h"

namespace tandem::controller {

inline constexpr const char* kAutomatic = "automatic: ";  // begins why the controller marked it

void mark_cordoned(Turn& turn, const std::string& name, NodeRecord& node, const std::string& why);
// `gpus` are indices of NodeRecord::gpus.
void mark_gpus_cordoned(Turn& turn, NodeRecord& node, std::span<const std::int32_t> gpus,
                        const std::string& why);
// Takes the marks from these GPUs, where they have any, for `why`, and forgets the deaths there.
void unmark_gpus_cordoned(Turn& turn, const scheduler::DeathPlace& place, const std::string& why);
// Sets the marks that the journal has of the node's GPUs, whose order may have changed.
void recall_cordoned_gpus(ControllerState& state, NodeRecord& node);
// Whether the node or GPUs of it have a mark of the controller's own, and none of a person.
bool is_automatic(const ControllerState& state, const NodeRecord& node);
// Takes the marks from a node that has any, and from its GPUs, and forgets the deaths there.
void unmark_cordoned(Turn& turn, const std::string& name, NodeRecord& node);

// "GPU 3 (GPU-6f2a…)", or of several "GPU 2 (…), GPU 3 (…)". An index is Tandem's own.
std::string gpus_in_words(const NodeRecord& node, std::span<const std::int32_t> gpus);

}  // namespace tandem::controller
