// The HTTP API (docs/design/contract.md) on the controller's actors: /api/v1 and /metrics. One
// table of routes (route.h) both serves requests and describes the API (openapi.h). Handlers run on
// the HTTP server's threads, ask the controller and the exchanges, and wait for their answers for
// at most kApiAskTimeout. Streams (watch, follow) are fed by an actor of their own, so that no
// server thread waits. Runs, samples, logs and events are in runs_api.h; who may call is in
// http_auth.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "actors/api/alerts.h"
#include "actors/controller/controller.h"
#include "actors/controller/watchdog.h"
#include "actors/runs/run_catalogue.h"
#include "runtime/actor/system.h"
#include "runtime/http/http_server.h"

namespace tandem::api {

// The facts about the controller's process in /api/v1/status.
struct ClusterIdentity {
  std::string version;
  std::uint64_t epoch = 0;
  std::int64_t pid = 0;
  std::string http;  // the server's address; empty before it listens
  std::int64_t started_ms = 0;
};

struct SubmittedJob {
  std::string yaml;              // the text of a job file
  std::string resume;            // the run to resume, by its id or directory; empty: a new run
  std::filesystem::path folder;  // where its relative paths start; empty: where the controller does
};

struct HttpApi {
  actor::Ref<controller::Controller::Inbox> controller;
  std::function<Result<controller::JobShape>(const SubmittedJob& job)> shape_of;  // checks it
  std::filesystem::path home;  // TANDEM_HOME, with the runs and the controller's journal
  runs::JobReaders read_job;
  std::function<ClusterIdentity()> identity;   // any thread
  std::function<std::string()> make_page_key;  // of HttpAuth; any thread
  actor::System& system;  // for the feeding actor, "http_streams"; outlives the server
  actor::Ref<controller::Watchdog::Inbox> watchdog = {};  // empty: waits for work have no deadline
  actor::Ref<Alerts::Inbox> alerts = {};                  // empty: nothing raises an alert
  DiskLook disk = {};                                     // empty: its figures are not shown
};

// The handler, for any number of threads. It answers /healthz, /readyz, /metrics, the page and the
// API.
http::HttpHandler make_http_handler(const HttpApi& api);

}  // namespace tandem::api
