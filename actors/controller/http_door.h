// Who may use the HTTP API. A caller shows the token of TANDEM_HOME/token, as a bearer (the command
// line, scripts, Prometheus) or as the cookie that a browser gets for a one-time key (the page).
//
// Against web pages that a user has open: the Host header must be a name of this machine (DNS
// rebinding), an Origin must be this server's own, and a POST by cookie must say its Origin. The
// cookie is HttpOnly, SameSite=Strict and good until the controller ends; its name carries the
// cluster, since a browser sends a cookie to every port of a host.
//
// Not here: encryption. Beyond loopback the token travels as it is: use `ssh -L` (SECURITY.md).
//
//   HD-1  Without the token nothing is answered but kOpenPaths and the web page's own files, which
//         are the same everywhere, and nothing is changed.
//   HD-2  A one-time key opens the page once, within kPageKeyLifetime.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/net/http_server.h"

namespace tandem::actors {

inline constexpr std::string_view kOpenPaths[] = {"/healthz", "/readyz"};
inline constexpr Duration kPageKeyLifetime = std::chrono::minutes(2);
inline constexpr std::size_t kPageKeysMax = 256;  // more push the oldest out

struct HttpDoorRules {
  std::string token;
  // What a Host header may name, each with any port, beside localhost, 127.0.0.1 and [::1].
  std::vector<std::string> hosts;
  bool metrics_without_token = false;  // /metrics is as open as kOpenPaths
};

class HttpDoor {
 public:
  explicit HttpDoor(HttpDoorRules rules);

  // The response that a request gets instead of an answer; nothing: it may pass. Any thread.
  std::optional<runtime::HttpResponse> refuse(const runtime::HttpRequest& request) const;

  // A key that lets a browser in, and the browser's first request with it: "/?key=KEY" is answered
  // with the cookie and the way to "/", or a page that says how to get another key.
  std::string make_page_key(Time now);
  runtime::HttpResponse open_page(const std::string& key, Time now);

  const std::string& cookie_name() const { return cookie_name_; }

 private:
  bool knows_host(std::string_view host) const;
  bool has_token(const runtime::HttpRequest& request) const;
  bool has_cookie(const runtime::HttpRequest& request) const;

  const HttpDoorRules rules_;
  const std::string cookie_name_;
  const std::string cookie_value_;
  Guarded<std::map<std::string, Time>> page_keys_;  // and until when they are good
};

// The headers of every response: no scripts but ours, no framing, no guessing of types, no cache.
void add_safety_headers(runtime::HttpHeaders& headers);

// `handler` behind the door. Adds `POST /api/v1/dashboard` -> {"path", "expires_s"}, which makes a
// page key, and "/?key=KEY". `door` outlives the handler.
runtime::HttpHandler guarded_by(HttpDoor& door, runtime::HttpHandler handler);

}  // namespace tandem::actors
