// The requests of users: submit, scale, cancel, forget. Only these can fail (kInfeasible, kInvalid,
// kNotFound, kFailed), and one that fails changes nothing. Beside them the jobs that a controller
// takes up from the one before it.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

Result<void> take(Turn& turn, const SubmitJob& submit);
void take(Turn& turn, const TakeUpJobs& taken);  // before any other request, at most once
Result<void> take(Turn& turn, const ScaleRole& scale);
Result<void> take(Turn& turn, const RollBack& back);
Result<void> take(Turn& turn, const CancelJob& cancel);
Result<void> take(Turn& turn, const ForgetJob& forget);

}  // namespace tandem::controller
