#include "actors/rollout/external/served_server.h"

#include <unistd.h>

#include <utility>

#include "actors/rollout/external/server_about.h"
#include "actors/rollout/external/server_plugin.h"
#include "actors/rollout/external/server_process.h"
#include "runtime/base/log.h"
#include "runtime/http/http_client.h"
#include "runtime/link/free_port.h"
#include "runtime/link/io_thread.h"

namespace tandem::rollout {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(500);  // between looks at a starting server
constexpr Duration kCallTimeout = std::chrono::seconds(30);

// Everything that a server needs while it is driven. Members end in the reverse order: the requests
// first, the thread that serves the child's pipes last.
struct Parts {
  link::Endpoint at;
  std::string prefix;  // of each route, without a slash at its end: the path of the url
  std::unique_ptr<link::IoThread> io;
  std::unique_ptr<ServerProcess> process;
  std::unique_ptr<http::HttpRequests> requests;

  void ask(const ServerCall& call, Duration timeout, ServerLink::Done done) const;
};

void Parts::ask(const ServerCall& call, Duration timeout, ServerLink::Done done) const {
  const http::Url url{at, prefix + call.target};
  if (call.method == CallMethod::kGet)
    return requests->get(url, timeout, {}, http::kHttpResponseBytesMax, std::move(done));
  http::HttpHeaders headers;
  if (!call.body.empty()) headers["content-type"] = "application/json";
  requests->post(url, call.body, timeout, headers, http::kHttpResponseBytesMax, std::move(done));
}

Error named(const ServerSpec& spec, ErrorCode code, std::string message, std::string help) {
  return {code, std::string(spelling(spec.dialect->name)) + ": " + std::move(message),
          spec.url.empty() ? "rollout.engine" : spec.url, std::move(help)};
}

Result<void> start(const ServerSpec& spec, Parts& parts) {
  const auto port = link::free_port();
  if (!port) return port.error();
  parts.at = {.host = link::kLoopback, .port = *port};
  LaunchSpec launch = spec.launch;
  launch.port = *port;
  node::ChildProgram program;
  program.argv = spec.command.empty() ? spec.dialect->program(spec.python) : spec.command;
  for (std::string& argument : spec.dialect->arguments(launch))
    program.argv.push_back(std::move(argument));
  program.argv.insert(program.argv.end(), spec.args.begin(), spec.args.end());
  auto added = spec.dialect->environment(launch);
  for (const auto& [name, value] : spec.env) added[name] = value;
  if (spec.dialect->loads_module(launch.transfer))
    if (const auto placed = place_plugin(spec.plugin_folder, added); !placed) return placed.error();
  program.env = server_environment(environ, added);
  log::info("event=engine_starts program={} port={}", program.argv.front(), *port);
  parts.io = std::make_unique<link::IoThread>("engine");
  auto process = ServerProcess::start(program, node::process_spawner(*parts.io));
  if (!process)
    return named(spec,
                 process.error().code == ErrorCode::kOutOfMemory ? ErrorCode::kOutOfMemory
                                                                 : ErrorCode::kInvalid,
                 process.error().message,
                 "install it, or name its program in rollout.engine.command, or the interpreter "
                 "of its environment in rollout.engine.python");
  parts.process = *std::move(process);
  return {};
}

// Whether the model of the server at the port has the name that ours was given.
bool is_ours(const ServerSpec& spec, const Parts& parts) {
  const auto models = http::http_get(parts.at, "/v1/models", kCallTimeout);
  return models && models->status == 200 &&
         models->body.find('"' + spec.launch.name + '"') != std::string::npos;
}

// Whether it answers /health with 200, by the deadline.
Result<void> await_health(const ServerSpec& spec, const Parts& parts) {
  const Time deadline = steady_now() + spec.startup_timeout;
  std::string last = "nothing listens there";
  for (;;) {
    if (spec.beat) spec.beat();
    if (const auto why = parts.process ? parts.process->ended() : std::nullopt)
      return named(spec, ErrorCode::kFailed, "its server " + *why,
                   "look at this rollout's log for all that it said");
    if (steady_now() >= deadline)
      return named(spec, ErrorCode::kTimedOut, "its server was not ready in time (" + last + ")",
                   spec.url.empty() ? "look at this rollout's log, or raise "
                                      "rollout.engine.startup_timeout_s"
                                    : "is the address right, and does the server run?");
    if (!http::await_server(parts.at, kLook)) continue;
    const auto health = http::http_get(parts.at, parts.prefix + "/health", kCallTimeout);
    last =
        health ? "its /health answers " + std::to_string(health->status) : health.error().message;
    if (!health || health->status != 200) continue;
    if (!parts.process || is_ours(spec, parts)) return {};
    last = "another server has taken its port";
  }
}

// Whether it can be driven: it has the routes, and what the job needs besides where it was not
// started by us.
Result<void> check_server(const ServerSpec& spec, const Parts& parts) {
  const GetFromServer get = [&](const std::string& target) {
    return http::http_get(parts.at, parts.prefix + target, kCallTimeout);
  };
  if (!parts.process) {
    const auto about = ask_about(get);
    if (!about) return named(spec, about.error().code, about.error().message, "");
    if (const auto unmet = unmet_need(*about, {.engine = spec.dialect->name,
                                               .positions = spec.launch.positions_max,
                                               .processed_logprobs = spec.needs_processed,
                                               .transfer = spec.launch.transfer}))
      return named(spec, unmet->code, unmet->message, unmet->help);
  }
  const auto missing = missing_routes(get, spec.dialect->routes(spec.launch.transfer));
  if (!missing) return named(spec, missing.error().code, missing.error().message, "");
  if (missing->empty()) return {};
  return named(spec, ErrorCode::kInvalid,
               "its server has no route " + std::string(missing->front().target),
               std::string(missing->front().remedy));
}

Result<void> attach(const ServerSpec& spec, Parts& parts) {
  auto url = http::parse_url(spec.url);
  if (!url) return url.error();
  parts.at = std::move(url->server);
  parts.prefix = std::move(url->target);
  while (parts.prefix.ends_with('/')) parts.prefix.pop_back();
  return {};
}

}  // namespace

Result<ServerLink> open_server(ServerSpec spec) {
  auto parts = std::make_shared<Parts>();
  auto source = make_weight_source(spec.launch.transfer, std::move(spec.weights));
  if (!source) return source.error();
  parts->requests = std::make_unique<http::HttpRequests>();
  const auto opened = spec.url.empty() ? start(spec, *parts) : attach(spec, *parts);
  if (!opened) return opened.error();
  if (const auto ready = await_health(spec, *parts); !ready) return ready.error();
  if (const auto fine = check_server(spec, *parts); !fine) return fine.error();
  log::info("event=engine_ready engine={} at={}", spelling(spec.dialect->name),
            to_string(parts->at));
  return ServerLink{
      .weights = *std::move(source),
      .ask = [parts](const ServerCall& call, Duration timeout,
                     ServerLink::Done done) { parts->ask(call, timeout, std::move(done)); },
      .ended = [parts]() -> std::optional<std::string> {
        return parts->process ? parts->process->ended() : std::nullopt;
      }};
}

}  // namespace tandem::rollout
