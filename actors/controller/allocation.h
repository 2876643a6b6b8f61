// How many actors each role of a job has: what may be asked for, and the change of it. Other parts
// carry the change out: queue.h starts actors that were added, stopping.h ends those that are not
// wanted any more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "actors/controller/turn.h"

namespace tandem::controller {

// Gives the job so many actors of these roles, whoever asks for it; `text` is the event that says
// so. kInfeasible where they could never run together, and nothing is changed then.
Result<void> reallocate(Turn& turn, JobRecord& job,
                        const std::map<messages::Role, std::int32_t>& changes,
                        const std::string& text);

// The number of actors that a user asks for. kInvalid for a role that the job does not have or that
// cannot be scaled, and for a number out of its bounds.
Result<std::int32_t> replicas_asked(const JobShape& shape, const messages::Role& role,
                                    std::string_view count);

}  // namespace tandem::controller
