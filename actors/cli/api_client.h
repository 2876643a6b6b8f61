// The controller's HTTP API for the command line: finding its address and token, JSON in and out,
// its errors as ours. All calls block; one object per thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/http/http.h"
#include "runtime/http/http_client.h"
#include "runtime/http/http_server.h"
#include "runtime/link/endpoint.h"

namespace tandem::cli {

// A controller that cannot be reached may be started again, if a node keeps it
// (actors/main/controller_keeper.h) or it has answered this client before, at an address that was
// given too: what only reads is asked again for so long from its loss, or for as long as a request
// of this client may take. What changes anything is sent once.
inline constexpr Duration kReconnectWithin = std::chrono::seconds(15);

// How long a request waits for its answer, and a stream without a tick for its next line.
inline constexpr Duration kRequestTimeout = std::chrono::seconds(30);
// The least time of a request, also where a command's own time is nearly over.
inline constexpr Duration kOneLook = std::chrono::seconds(1);

struct ApiAddress {
  link::Endpoint endpoint;
  std::string token;  // sent with every call; empty: none was found
  std::string from;   // "--address", "TANDEM_ADDRESS" or the path of controller.json, for messages
  // The state folder with that controller.json; empty for an address that was given by hand.
  std::filesystem::path folder = {};
};

// The state folder: TANDEM_HOME as an absolute path, or ~/.tandem. It may not exist.
std::filesystem::path tandem_home();
// The file in `home` with the token that every HTTP call carries.
std::filesystem::path token_path(const std::filesystem::path& home);

// The controller to talk to: --address, then TANDEM_ADDRESS, then TANDEM_HOME/controller.json while
// a controller holds the lock beside it. kUnreachable when there is none. The token is
// TANDEM_TOKEN, else the content of TANDEM_HOME/token, if that can be read.
Result<ApiAddress> resolve_address(const std::optional<std::string>& flag);
// Likewise; where a node keeps the controller of TANDEM_HOME, waits for it, for at most `within`,
// and calls `on_wait` before.
Result<ApiAddress> await_address(const std::optional<std::string>& flag, Duration within,
                                 const std::function<void()>& on_wait);

// The controller of this state folder, likewise. Its token is that of TANDEM_HOME.
Result<ApiAddress> address_in(const std::filesystem::path& folder);

// Escapes one part of a path, or the value of a query: "a/b c" -> "a%2Fb%20c".
std::string url_escape(std::string_view text);

class ApiClient {
 public:
  explicit ApiClient(ApiAddress address, Duration timeout = kRequestTimeout)
      : address_(std::move(address)), timeout_(timeout) {}

  // Asks a handler of this process, which answers GET with whole responses.
  explicit ApiClient(http::HttpHandler local) : local_(std::move(local)) {}

  // Of these, get(), get_text() and stream() outlive a restart of the controller.
  // `path` starts after /api/v1 and may carry a query: "/jobs/arith-1/samples?step=3". An error
  // status is the Error that its body describes; no answer is kUnreachable with help.
  Result<nlohmann::json> get(const std::string& path) const;
  Result<std::string> get_text(const std::string& path) const;  // the body as it is
  Result<nlohmann::json> post(const std::string& path, const std::string& body) const;
  Result<void> remove(const std::string& path) const;  // DELETE

  // An answer that comes line by line, which the caller reads at its own pace.
  Result<http::HttpLines> lines(const std::string& path) const;

  // Calls `on_line` for each line of such an answer, until the server ends it or on_line returns
  // false. With `tick` > 0 on_line also gets nullopt whenever `tick` has passed without a line;
  // without it, silence of kRequestTimeout is an error.
  using OnLine = std::function<bool(std::optional<std::string_view>)>;
  Result<void> stream(const std::string& path, Duration tick, const OnLine& on_line) const;
  // The same with a function that opens the answer, and opens it again after each restart.
  Result<void> stream_of(const std::function<Result<http::HttpLines>()>& open, Duration tick,
                         const OnLine& on_line) const;

  // Asked while the controller is away: whether not to wait for it any longer.
  void give_up_when(std::function<bool()> tired) { tired_ = std::move(tired); }
  // No wait for the controller goes on past `until`: one that is away by then is kTimedOut. Nor
  // does a get or the opening of a stream, but each has kOneLook in any case.
  void give_up_at(Time until) { until_ = until; }
  // Called once in each absence of the controller that is waited for, unless it is back at once.
  void tell_of_wait(std::function<void()> on_wait) { on_wait_ = std::move(on_wait); }

  const ApiAddress& address() const { return address_; }

 private:
  // Adds the address and help to an error of kind kUnreachable.
  Error explain(const Error& error) const;
  // Calls `ask` until it is answered, or is not worth another try. What it returns has an error()
  // of kind kUnreachable where the controller could not be reached.
  template <class Ask>
  auto outliving_a_restart(Ask ask) const -> decltype(ask());
  struct Absence {
    Time give_up;
    int looks = 0;
  };
  Absence absence_from_now() const;
  // Waits until the controller is back, which may be asked again then; false: in vain.
  bool comes_back(Absence& absence) const;
  bool may_be_back() const;
  bool is_ours() const;
  Error late(Error error) const;
  Duration patience() const;
  http::HttpHeaders headers() const;

  mutable ApiAddress address_;  // its endpoint may change with a restart
  Duration timeout_ = kRequestTimeout;
  mutable bool answered_ = false;  // the controller has answered this client before
  mutable bool late_ = false;      // `until_` has passed while the controller was away
  std::optional<Time> until_;
  std::function<bool()> tired_;    // may be empty
  std::function<void()> on_wait_;  // may be empty
  http::HttpHandler local_;        // empty: the controller at `address_` is asked
};

}  // namespace tandem::cli
