// Blocking HTTP for the command line: GET, POST and DELETE with a deadline, and a reader of
// streamed lines; and requests that are answered later, for actors. Errors: kUnreachable (no
// server listens there, or it ended the connection before its answer), kTimedOut, kFailed (the
// answer is not HTTP). A response with an error status is a response and no Error; error_of()
// (http.h) makes an Error of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/http/http.h"
#include "runtime/link/endpoint.h"

namespace tandem::http {

inline constexpr std::size_t kHttpResponseBytesMax = 256 << 20;  // a longer body: kFailed
// The most bytes of a streamed line; a longer one: kFailed.
inline constexpr std::size_t kHttpLineBytesMax = 16 << 20;

// `target` is path and query with %-escapes made. `timeout` covers all of a call: looking up the
// host's name, the connection, the request and the whole response. Each call has a connection of
// its own.
Result<HttpResponse> http_get(const link::Endpoint& server, const std::string& target,
                              Duration timeout, const HttpHeaders& headers = {});
Result<HttpResponse> http_post(const link::Endpoint& server, const std::string& target,
                               std::string body, Duration timeout, const HttpHeaders& headers = {});
Result<HttpResponse> http_delete(const link::Endpoint& server, const std::string& target,
                                 Duration timeout, const HttpHeaders& headers = {});

// Waits until a server takes connections there; false where none does within `timeout`. Sends
// nothing.
bool await_server(const link::Endpoint& server, Duration timeout);

// An address of the web, as far as this client reaches.
struct Url {
  link::Endpoint server;
  std::string target;  // path and query
};
// "http://host:8000/path?query", where the port may be missing. Errors: kInvalid, also for https.
Result<Url> parse_url(std::string_view text);

// Where a server that speaks OpenAI's API has `route`, as "/chat/completions": an address without a
// path, or with one that ends in /v1, gets the rest; any other one is the route's already.
std::string openai_url(std::string url, std::string_view route);

// Requests that are answered later, on a thread of the object's own. All members may be called from
// any thread.
class HttpRequests {
 public:
  using Done = std::function<void(Result<HttpResponse>)>;
  HttpRequests();
  ~HttpRequests();  // ends the calls that are under way; their `done` is not called any more

  // http_post() and http_get(), whose result goes to `done`, once, on the object's thread. A
  // response of more than `response_bytes_max` bytes is kFailed.
  void post(const Url& url, std::string body, Duration timeout, const HttpHeaders& headers,
            std::size_t response_bytes_max, Done done);
  void get(const Url& url, Duration timeout, const HttpHeaders& headers,
           std::size_t response_bytes_max, Done done);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A streamed response, line by line. One thread at a time.
class HttpLines {
 public:
  // Returns when the response's header has come; an error status becomes its Error.
  static Result<HttpLines> open(const link::Endpoint& server, const std::string& target,
                                Duration timeout, const HttpHeaders& headers = {});
  HttpLines(HttpLines&&) noexcept;
  ~HttpLines();

  // A header of the response; "": it has none of this name.
  std::string header(const std::string& name) const;
  // The next line without its end. Nothing: the server closed the stream. kTimedOut: no line came
  // within `timeout`; the stream is intact, and next() may be called again.
  Result<std::optional<std::string>> next(Duration timeout);

 private:
  struct State;
  explicit HttpLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::http
