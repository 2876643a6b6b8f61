// Requests and responses of the HTTP API as plain values, shared by server and client.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::runtime {

// Names in lower case. A request that repeats a name has the values joined by ", ".
using HttpHeaders = std::map<std::string, std::string>;

struct HttpRequest {
  std::string method;                        // "GET", "POST" …
  std::string target;                        // as sent, valid UTF-8: "/api/v1/jobs/a-1?watch=1"
  std::vector<std::string> segments;         // decoded: {"api", "v1", "jobs", "arith-1"}
  std::map<std::string, std::string> query;  // decoded: {{"watch", "1"}}
  HttpHeaders headers;
  std::string body;

  // Empty where there is none of that name.
  std::string header(const std::string& name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;  // besides the content's type and length
};

// Fills target, segments and query. Errors: kInvalid, not an absolute path or a broken %-escape.
Result<void> split_target(std::string_view target, HttpRequest& request);
std::string percent_encoded(std::string_view text);  // for one segment or one query value

// {"error": {"code", "message", "help"}} with the status that the code maps to, and back again.
HttpResponse error_response(const Error& error);
HttpResponse error_response(int status, const Error& error);
Error error_of(const HttpResponse& response);

}  // namespace tandem::runtime
