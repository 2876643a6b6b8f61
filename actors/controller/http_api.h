// The HTTP API (docs/design/contract.md) on the controller's actors: /api/v1 and /metrics. Handlers
// run on the HTTP server's threads and ask the controller and the exchanges; streams (watch,
// follow) are fed by an actor of their own, so that no server thread waits. Runs, samples, logs and
// events are runs_api.h's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "actors/controller/controller.h"
#include "actors/controller/run_catalogue.h"
#include "runtime/actor/system.h"
#include "runtime/net/http_server.h"

namespace tandem::actors {

// What /api/v1/status says of the controller's process.
struct ClusterIdentity {
  std::string version;
  std::uint64_t epoch = 0;
  std::int64_t pid = 0;
  std::string http;  // its address; empty before it listens
  std::int64_t started_ms = 0;
};

struct HttpApi {
  runtime::Ref<Controller::Inbox> controller;
  // Checks a submitted job file; its paths are absolute. `resume` names a run that it is to take
  // up, by its id or directory, and is empty for a new one.
  std::function<Result<JobShape>(const std::string& yaml, const std::string& resume)> shape_of;
  std::filesystem::path home;  // TANDEM_HOME: its runs and its journal
  ReadJobFacts read_job;
  std::function<ClusterIdentity()> identity;  // any thread
  runtime::System& system;  // for the feeding actor, "http_streams"; outlives the server
};

runtime::HttpHandler make_http_handler(const HttpApi& api);

}  // namespace tandem::actors
