// A request to scale a job may name several roles. Each is a wish of its own for the controller.
#pragma once

#include <functional>
#include <span>

#include "actors/controller/controller.h"

namespace tandem::api {

// Asks the controller for one role, and waits for the answer.
using AskForRole = std::function<Result<controller::Nothing>(const controller::ScaleRole&)>;

// Asks for all of these, in order, up to the first that is refused. One that stands and is not
// journalled yet (kTimedOut, CC-6) takes nothing from those behind it; the error names each such
// one.
Result<controller::Nothing> scale_roles(std::span<const controller::ScaleRole> wanted,
                                        const AskForRole& ask);

}  // namespace tandem::api
