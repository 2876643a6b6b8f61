// Blocking HTTP for the CLI: GET, POST and DELETE with a deadline, and a reader of streamed lines.
// Errors: kUnreachable (nobody listens there), kTimedOut, kFailed (the answer is not HTTP). A
// response with an error status is a response; error_of() (http.h) makes an Error of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/net/endpoint.h"
#include "runtime/net/http.h"

namespace tandem::runtime {

inline constexpr std::size_t kHttpResponseBytesMax = 256 << 20;
inline constexpr std::size_t kHttpLineBytesMax = 16 << 20;

Result<HttpResponse> http_get(const Endpoint& server, const std::string& target, Duration timeout,
                              const HttpHeaders& headers = {});
Result<HttpResponse> http_post(const Endpoint& server, const std::string& target, std::string body,
                               Duration timeout, const HttpHeaders& headers = {});
Result<HttpResponse> http_delete(const Endpoint& server, const std::string& target,
                                 Duration timeout, const HttpHeaders& headers = {});

class HttpLines {  // one thread
 public:
  // Returns when the response's header has come; an error status becomes its Error.
  static Result<HttpLines> open(const Endpoint& server, const std::string& target, Duration timeout,
                                const HttpHeaders& headers = {});
  HttpLines(HttpLines&&) noexcept;
  ~HttpLines();

  // The next line without its end; nothing: the server closed the stream. kTimedOut: none came
  // within `timeout`, and the stream may be read further.
  Result<std::optional<std::string>> next(Duration timeout);

 private:
  struct State;
  explicit HttpLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::runtime
