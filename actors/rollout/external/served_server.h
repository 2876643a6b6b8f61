// A server for an engine: started here or attached to, waited for until it can be driven, and then
// reached through the ServerLink that served_engine.h asks for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/rollout/external/served_engine.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

struct ServerSpec {
  const Dialect* dialect = nullptr;
  // Not empty: the address of a server that runs already. Else one is started by `command`, or by
  // the dialect's program where that is empty, and gets `launch` and then `args` as its arguments.
  std::string url;
  std::vector<std::string> command, args;
  std::string python;  // the interpreter of the engine's environment; empty: none is named
  std::map<std::string, std::string> env;
  LaunchSpec launch;  // its port is chosen here
  // A folder for what the server loads from us (server_plugin.h); made where it is missing.
  std::string plugin_folder;
  bool needs_processed = false;  // log-probabilities after temperature and filters
  Duration startup_timeout = std::chrono::minutes(20);
  SourceSpec weights;
  std::function<void()> beat;  // called while the server is waited for; may be empty
};

// Returns when the server answers and has the routes that the dialect needs; it then ends with the
// last copy of the link, unless it was attached to. Errors name the server, what it lacks, and what
// to do: a program that is not found, a server that ended while it started, or that was not ready
// in time, or that lacks a route.
Result<ServerLink> open_server(ServerSpec spec);

}  // namespace tandem::rollout
