// The tokens of a group, summed over its completions, by its header.
#pragma once

#include <cstdint>

#include "actors/messages/rollout.h"

namespace tandem::messages {

std::uint64_t completion_tokens(const GroupHeader& header);

}  // namespace tandem::messages
