#include "actors/main/http_places.h"

#include <utility>

namespace tandem::app {
namespace {

constexpr std::size_t kProbesMax = 16;  // connections at a time

}  // namespace

Result<HttpPlaces> serve_http(const http::HttpHandler& handler, api::HttpAuth& auth,
                              const HttpPlacesOptions& options) {
  const auto serve_users = [guarded = api::guarded_by(auth, handler)](std::uint16_t port) {
    return http::HttpServer::listen({.port = port}, {}, guarded);
  };
  HttpPlaces places;
  auto users = serve_users(options.port);
  if (!users && options.any_else && options.port != 0) users = serve_users(0);
  if (!users) return users.error();
  places.users = std::move(*users);
  if (!options.health_port) return places;
  auto probes = http::HttpServer::listen(
      {.host = options.bind, .port = static_cast<std::uint16_t>(*options.health_port)},
      {.body_bytes_max = 0, .connections_max = kProbesMax, .threads = 1}, api::for_probes(handler));
  if (!probes) return probes.error();
  places.probes = std::move(*probes);
  return places;
}

}  // namespace tandem::app
