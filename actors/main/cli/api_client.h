// The controller's HTTP API as the command line uses it: where it is, JSON in and out, its errors
// as ours. Blocking; one object per thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/net/endpoint.h"
#include "runtime/net/http.h"
#include "runtime/net/http_client.h"

namespace tandem::cli {

inline constexpr Duration kRequestTimeout = std::chrono::seconds(30);

struct ApiAddress {
  runtime::Endpoint endpoint;
  std::string token;  // what every call shows; empty: none was found
  std::string from;   // "--address", "TANDEM_ADDRESS" or the path of controller.json, for messages
};

// TANDEM_HOME, or ~/.tandem.
std::filesystem::path tandem_home();
// The file with the token that every HTTP call carries.
std::filesystem::path token_path(const std::filesystem::path& home);

// --address, then TANDEM_ADDRESS, then TANDEM_HOME/controller.json. kUnreachable when there is
// none. The token is TANDEM_TOKEN, else what TANDEM_HOME/token holds, if it can be read.
Result<ApiAddress> resolve_address(const std::optional<std::string>& flag);

// "a/b c" -> "a%2Fb%20c": one part of a path, or a query's value.
std::string url_escape(std::string_view text);

class ApiClient {
 public:
  explicit ApiClient(ApiAddress address, Duration timeout = kRequestTimeout)
      : address_(std::move(address)), timeout_(timeout) {}

  // `path` starts after /api/v1 and may carry a query: "/jobs/arith-1/samples?step=3". An error
  // status is the Error that its body describes; no answer is kUnreachable with help.
  Result<nlohmann::json> get(const std::string& path) const;
  Result<std::string> get_text(const std::string& path) const;  // whatever its type
  Result<nlohmann::json> post(const std::string& path, const std::string& body) const;
  Result<void> remove(const std::string& path) const;  // DELETE

  // Newline-delimited output that the caller reads at its own pace.
  Result<runtime::HttpLines> lines(const std::string& path) const;

  // Newline-delimited output until the server ends it or `on_line` returns false. With `tick` > 0
  // on_line also sees nullopt whenever so long has passed without a line; without, silence of
  // kRequestTimeout is an error.
  Result<void> stream(const std::string& path, Duration tick,
                      const std::function<bool(std::optional<std::string_view>)>& on_line) const;

  const ApiAddress& address() const { return address_; }

 private:
  Error explain(const Error& error) const;
  runtime::HttpHeaders headers() const;

  ApiAddress address_;
  Duration timeout_;
};

}  // namespace tandem::cli
