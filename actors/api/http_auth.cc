// The order of checks matters. Host and Origin come first, also for open paths and for callers with
// the token. A bearer token needs no Origin, since no web page can know it. A browser sends the
// cookie on its own, so a change by cookie must prove by its Origin that our page asked for it. The
// token and the cookie are compared in constant time (same_secret).
#include "actors/api/http_auth.h"

#include <algorithm>
#include <utility>

#include "actors/api/web_page.h"
#include "runtime/base/secret.h"

namespace tandem::api {
namespace {

using http::HttpRequest;
using http::HttpResponse;

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kNamesOfThisMachine[] = {"localhost", "127.0.0.1", "[::1]"};
constexpr int kForbidden = 403;
constexpr int kMisdirected = 421;
constexpr int kSeeOther = 303;

// "127.0.0.1:7422" -> "127.0.0.1", "[::1]:80" -> "[::1]".
std::string_view without_port(std::string_view host) {
  const auto colon = host.rfind(':');
  const auto bracket = host.rfind(']');
  // A colon within brackets belongs to an IPv6 address.
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  return has_port ? host.substr(0, colon) : host;
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

// The value of one cookie in "a=1; b=2"; empty where there is none.
std::string_view cookie_of(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const auto end = cookies.find(';');
    std::string_view one = cookies.substr(0, end);
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      return one.substr(name.size() + 1);
    if (end == std::string_view::npos) break;
    cookies.remove_prefix(end + 1);
  }
  return {};
}

HttpResponse refusal(int status, std::string message, std::string help) {
  return http::error_response(
      status, Error{ErrorCode::kUnauthorised, std::move(message), "", std::move(help)});
}

std::string path_of(const HttpRequest& request) {
  return request.target.substr(0, request.target.find('?'));
}

bool is_page(const HttpRequest& request) {
  return request.method == "GET" && request.segments.empty();
}

bool is_open_path(const HttpRequest& request) {
  return std::ranges::find(kOpenPaths, path_of(request)) != std::end(kOpenPaths);
}

http::HttpHandler with_safety_headers(http::HttpHandler handler) {
  return [handler = std::move(handler)](const HttpRequest& request) {
    http::HttpAnswer result = handler(request);
    std::visit([](auto& response) { add_safety_headers(response.headers); }, result);
    return result;
  };
}

}  // namespace

HttpAuth::HttpAuth(HttpAuthRules rules)
    : rules_(std::move(rules)),
      cookie_name_("tandem-" + hmac_hex(rules_.token, "cookie name").substr(0, 12)),
      cookie_value_(hmac_hex(rules_.token, "cookie value " + rules_.nonce)) {}

bool HttpAuth::knows_host(std::string_view host) const {
  const std::string_view name = without_port(host);
  const auto is = [&](std::string_view known) { return same_name(name, known); };
  return std::ranges::any_of(kNamesOfThisMachine, is) || std::ranges::any_of(rules_.hosts, is);
}

bool HttpAuth::has_token(const HttpRequest& request) const {
  const std::string given = request.header("authorization");
  return given.starts_with(kBearer) &&
         same_secret(std::string_view(given).substr(kBearer.size()), rules_.token);
}

bool HttpAuth::has_cookie(const HttpRequest& request) const {
  const std::string cookies = request.header("cookie");
  return same_secret(cookie_of(cookies, cookie_name_), cookie_value_);
}

std::optional<HttpResponse> HttpAuth::refuse(const HttpRequest& request) const {
  const std::string host = request.header("host");
  if (!knows_host(host))
    return refusal(kMisdirected, "this server is not '" + host + "'",
                   "use 127.0.0.1 or localhost, or start with --allow-host NAME");
  const std::string origin = request.header("origin");
  if (!origin.empty() && origin != "http://" + host)
    return refusal(kForbidden, "a page of " + origin + " may not use this server",
                   "open the page of this server: tandem dashboard");
  if (is_open_path(request)) return std::nullopt;
  // The page that says how to sign in needs its style and script.
  if (is_open_file(request)) return std::nullopt;
  if (rules_.metrics_without_token && path_of(request) == "/metrics") return std::nullopt;
  if (has_token(request)) return std::nullopt;
  if (is_page(request) && request.query.contains("key")) return std::nullopt;  // open_page judges
  if (has_cookie(request)) {
    if (request.method == "GET" || !origin.empty()) return std::nullopt;
    return refusal(kForbidden, "a change by cookie needs the header Origin",
                   "scripts send the token: Authorization: Bearer TOKEN");
  }
  if (is_page(request)) return not_signed_in();
  return refusal(401, "this needs the token of the controller's user",
                 "run as that user, or set TANDEM_TOKEN to the content of its TANDEM_HOME/token");
}

std::string HttpAuth::make_page_key(Time now) {
  std::string key = random_secret();
  page_keys_.with([&](std::map<std::string, Time>& keys) {
    std::erase_if(keys, [&](const auto& entry) { return entry.second <= now; });
    if (keys.size() >= kPageKeysMax)
      // All keys have the same lifetime, so the one that ends first is the oldest.
      keys.erase(std::ranges::min_element(keys, {}, [](const auto& e) { return e.second; }));
    keys[key] = now + kPageKeyLifetime;
  });
  return key;
}

HttpResponse HttpAuth::open_page(const std::string& key, Time now) {
  const bool good = page_keys_.with([&](std::map<std::string, Time>& keys) {
    // The key is taken out whether or not it is still valid: a key works once (HA-2).
    const auto used = keys.extract(key);
    return !used.empty() && now < used.mapped();
  });
  if (!good) return not_signed_in();
  HttpResponse response{.status = kSeeOther, .content_type = "text/plain", .body = ""};
  response.headers["location"] = "/";
  response.headers["set-cookie"] =
      cookie_name_ + "=" + cookie_value_ + "; Path=/; HttpOnly; SameSite=Strict";
  return response;
}

void add_safety_headers(http::HttpHeaders& headers) {
  headers.emplace("content-security-policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                  "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                  "frame-ancestors 'none'");
  headers.emplace("x-content-type-options", "nosniff");
  headers.emplace("referrer-policy", "no-referrer");
  headers.emplace("cross-origin-resource-policy", "same-origin");
  headers.emplace("cache-control", "no-store");
}

http::HttpHandler for_probes(http::HttpHandler handler) {
  return with_safety_headers([handler = std::move(handler)](const HttpRequest& request) {
    if (request.method == "GET" && is_open_path(request)) return handler(request);
    return http::HttpAnswer(refusal(404, "here is nothing but /healthz and /readyz",
                                    "the API is at the controller's HTTP address"));
  });
}

http::HttpHandler guarded_by(HttpAuth& auth, http::HttpHandler handler) {
  return with_safety_headers(
      [&auth, handler = std::move(handler)](const HttpRequest& request) -> http::HttpAnswer {
        if (auto refused = auth.refuse(request)) return std::move(*refused);
        if (is_page(request) && request.query.contains("key"))
          return auth.open_page(request.query.at("key"), steady_now());
        return handler(request);
      });
}

}  // namespace tandem::api
