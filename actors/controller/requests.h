// The requests of users: submit, scale, cancel, forget. Only these can fail (kInfeasible, kInvalid,
// kNotFound, kFailed), and one that fails changes nothing. Beside them the jobs that a controller
// takes up from the one before it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "actors/controller/turn.h"

namespace tandem::controller {

Result<void> take(Turn& turn, const SubmitJob& submit);
void take(Turn& turn, const TakeUpJobs& taken);  // before any other request, at most once
Result<void> take(Turn& turn, const ScaleRole& scale);
Result<void> take(Turn& turn, const RollBack& back);
Result<void> take(Turn& turn, const CancelJob& cancel);
Result<void> take(Turn& turn, const ForgetJob& forget);

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
