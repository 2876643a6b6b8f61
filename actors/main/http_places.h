// Where a controller answers HTTP: users on the loopback, and probes at an address that other hosts
// reach, where a port is named for them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/api/http_auth.h"
#include "runtime/base/result.h"
#include "runtime/http/http_server.h"

namespace tandem::app {

struct HttpPlaces {
  std::unique_ptr<http::HttpServer> users, probes;  // probes: null where there are none
};

struct HttpPlacesOptions {
  std::uint16_t port = 0;  // for users; 0: any free one
  bool any_else = false;   // where that one is taken, any free one
  std::string bind;        // the address for probes
  std::optional<std::int64_t> health_port = {};
};

// `auth` guards what users get of `handler`, and must outlive the servers. Errors: a port is taken.
Result<HttpPlaces> serve_http(const http::HttpHandler& handler, api::HttpAuth& auth,
                              const HttpPlacesOptions& options);

}  // namespace tandem::app
