// The HTTP API of contract §3 on the controller's actors: /api/v1 and /metrics. Handlers run on the
// HTTP server's threads and ask the controller and the exchanges; streams (watch, follow) are fed
// by an actor of their own, so that no server thread waits.
#pragma once

#include <functional>
#include <string>

#include "actors/controller/controller.h"
#include "runtime/actor/system.h"
#include "runtime/net/http_server.h"

namespace tandem::actors {

inline constexpr Duration kApiAskTimeout = std::chrono::seconds(5);
inline constexpr Duration kWatchInterval = std::chrono::milliseconds(250);

struct HttpApi {
  runtime::Ref<Controller::Inbox> controller;
  // Checks a submitted job file; its paths are absolute.
  std::function<Result<JobShape>(const std::string& yaml)> shape_of;
  runtime::System& system;  // for the feeding actor, "http_streams"; outlives the server
};

runtime::HttpHandler make_http_handler(const HttpApi& api);

}  // namespace tandem::actors
