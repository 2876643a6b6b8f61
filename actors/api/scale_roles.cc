#include "actors/api/scale_roles.h"

#include <optional>

namespace tandem::api {

Result<controller::Nothing> scale_roles(std::span<const controller::ScaleRole> wanted,
                                        const AskForRole& ask) {
  std::optional<Error> late;
  for (const controller::ScaleRole& scale : wanted) {
    const auto done = ask(scale);
    if (done) continue;
    if (done.error().code != ErrorCode::kTimedOut) {
      Error refused = done.error();
      if (late) refused.message += "; " + late->message;
      return refused;
    }
    if (late)
      late->message += "; " + done.error().message;
    else
      late = done.error();
  }
  if (late) return *late;
  return controller::Nothing{};
}

}  // namespace tandem::api
