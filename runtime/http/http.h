// Requests and responses of the HTTP API as plain values, shared by server and client. Not here:
// sockets (http_server.h, http_client.h), and which paths exist (actors/api).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::http {

// Names are in lower case. A header that repeats a name has the values joined by ", ".
using HttpHeaders = std::map<std::string, std::string>;

// A request as a handler sees it. Text in it is valid UTF-8 except for headers and body, which are
// bytes of the client's.
struct HttpRequest {
  std::string method;                        // "GET", "POST" …
  std::string target;                        // as sent, valid UTF-8: "/api/v1/jobs/a-1?watch=1"
  std::vector<std::string> segments;         // decoded: {"api", "v1", "jobs", "arith-1"}
  std::map<std::string, std::string> query;  // decoded: {{"watch", "1"}}
  HttpHeaders headers;
  std::string body;

  // The value of a header; empty where there is none. `name` is in lower case.
  std::string header(const std::string& name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;  // besides the content's type and length
};

// Fills target, segments and query. Empty segments are left out, and the last value of a repeated
// query key counts. Errors: kInvalid, not an absolute path or a broken %-escape.
Result<void> split_target(std::string_view target, HttpRequest& request);
// The inverse for building targets: escapes all but letters, digits and -._~

// The codes that an error's body may have.
inline constexpr ErrorCode kErrorCodes[] = {ErrorCode::kInvalid,     ErrorCode::kFailed,
                                            ErrorCode::kOutOfMemory, ErrorCode::kInfeasible,
                                            ErrorCode::kNotFound,    ErrorCode::kUnauthorised,
                                            ErrorCode::kTimedOut,    ErrorCode::kUnreachable};

// {"error": {"code", "message", "help", "where"}} with the status that the code maps to, or the one
// given; where the error has further ones, also "errors", a list of {"message", "help", "where"},
// and "errors_left_out". error_of() is the way back: it takes the code from the body, and from the
// status where the body is not of this form, as that of a proxy. From a list it takes the entries
// that have a message, at most as many as an Error tells, and counts the others as left out.
HttpResponse error_response(const Error& error);
HttpResponse error_response(int status, const Error& error);
Error error_of(const HttpResponse& response);

}  // namespace tandem::http
