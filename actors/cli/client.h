// The surroundings of a command that talks to the controller's HTTP API.
#pragma once

#include "actors/cli/api_client.h"
#include "actors/cli/console.h"
#include "actors/cli/views.h"
#include "runtime/base/clock.h"

namespace tandem::cli {

// `api` and `console` outlive the command.
struct Client {
  ApiClient& api;
  const Console& console;
};

inline Screen screen_of(const Client& client) { return {client.console.columns(), unix_ms()}; }

// A command that waits for a state looks again after so much silence of the API's watch stream.
inline constexpr Duration kLookAgain = std::chrono::seconds(1);

}  // namespace tandem::cli
