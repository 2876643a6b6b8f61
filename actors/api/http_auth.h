// Who may use the HTTP API. A caller shows the token of TANDEM_HOME/token, either as a bearer token
// (the command line, scripts, Prometheus) or as the cookie that a browser gets for a one-time key
// (the page).
//
// Against web pages that a user has open at the same time:
//   Host    must be a name of this machine, against DNS rebinding
//   Origin  must be this server's own where it is sent; a POST by cookie must send it
//   cookie  is HttpOnly, SameSite=Strict and valid until the cluster is taken down. Its name
//           depends on the cluster, since a browser sends a cookie to every port of a host
//
// There is no encryption here. Beyond loopback the token travels in clear: use `ssh -L`
// (SECURITY.md).
//
//   HA-1  Without the token nothing is answered but kOpenPaths and the web page's own files, which
//         are the same everywhere, and nothing is changed.
//   HA-2  A one-time key opens the page once, within kPageKeyLifetime.
//   HA-3  Where probes come from other hosts, they are answered kOpenPaths and nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/http/http_server.h"

namespace tandem::api {

inline constexpr std::string_view kOpenPaths[] = {"/healthz", "/readyz"};
inline constexpr Duration kPageKeyLifetime = std::chrono::minutes(2);
inline constexpr std::size_t kPageKeysMax = 256;  // a further key replaces the oldest

struct HttpAuthRules {
  std::string token;
  // The cookie's value is made from the token and this, which is no secret: a controller that is
  // started again has the nonce of the one before, so that its pages go on.
  std::string nonce;
  // Names that a Host header may have, each with any port, besides localhost, 127.0.0.1 and [::1].
  std::vector<std::string> hosts;
  bool metrics_without_token = false;  // /metrics is as open as kOpenPaths
};

class HttpAuth {
 public:
  explicit HttpAuth(HttpAuthRules rules);

  // The response that refuses the request; nullopt if it may pass. Any thread.
  std::optional<http::HttpResponse> refuse(const http::HttpRequest& request) const;

  // make_page_key() returns a key that lets a browser in. open_page() answers the browser's first
  // request, "/?key=KEY": with the cookie and a redirection to "/", or with a page that says how to
  // get another key. Any thread.
  std::string make_page_key(Time now);
  http::HttpResponse open_page(const std::string& key, Time now);

  const std::string& cookie_name() const { return cookie_name_; }

 private:
  bool knows_host(std::string_view host) const;
  bool has_token(const http::HttpRequest& request) const;
  bool has_cookie(const http::HttpRequest& request) const;

  const HttpAuthRules rules_;
  const std::string cookie_name_;
  const std::string cookie_value_;
  Guarded<std::map<std::string, Time>> page_keys_;  // unused keys, with the end of their validity
};

// Adds the headers that every response has: only our own scripts, no framing, no guessing of types,
// no cache.
void add_safety_headers(http::HttpHeaders& headers);

// `handler` behind the checks of `auth`, which must outlive the result. Adds the route "/?key=KEY".
http::HttpHandler guarded_by(HttpAuth& auth, http::HttpHandler handler);

// What of `handler` is for probes, such as those of Kubernetes (HA-3).
http::HttpHandler for_probes(http::HttpHandler handler);

}  // namespace tandem::api
