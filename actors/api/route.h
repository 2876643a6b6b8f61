// A route of the HTTP API as a value, and the table of all routes. Requests are dispatched by the
// table, and openapi.h describes the API from the table, so that nothing is served that is not
// described. Not here: who may call (http_auth.h), and the page's files (web_page.h).
//
//   HR-1  Each route of a table can be reached: a request for its method, and for its path with any
//         names in place of the parameters, comes to it and to no other.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/api/query.h"
#include "runtime/http/http_server.h"

namespace tandem::api {

// A request that has come to its route. Borrows the request for the handler's call.
struct Call {
  const http::HttpRequest& request;
  std::map<std::string, std::string, std::less<>> path;  // the parameters: {{"run", "a-1"}}

  const std::string& at(std::string_view parameter) const;  // CHECKs that the path has it
};

using RouteHandler = std::function<http::HttpAnswer(const Call&)>;

// The body of a request, or one of the forms that the body of an answer may have.
struct Body {
  std::string media_type;
  nlohmann::json schema;  // made by schema.h; of a stream of lines: the schema of one line
  std::string about;      // may be empty
};
Body json_body(nlohmann::json schema, std::string about);
Body json_lines_body(nlohmann::json schema, std::string about);  // a value for each line
Body text_body(std::string about);

struct RouteError {
  int status;
  const char* when;
};

struct Route {
  std::string method;
  // "/api/v1/actors/{actor...}/logs": {name} stands for one part of the path, and {name...} for
  // one or more, with their slashes. A path has at most one {name...}.
  std::string path;
  std::string id;       // unlike all others: the name of a function of a client
  std::string summary;  // a few words
  std::string about = {};
  std::vector<QueryParameter> query = {};
  std::optional<Body> body = {};
  std::vector<Body> answers;  // with status 200; several where the query chooses the form
  // The errors that are of this route's own; openapi.h adds those that all have.
  std::vector<RouteError> errors = {};
  bool open = false;  // needs no token
  RouteHandler handler;
};

// Immutable once made; any thread may ask.
class RouteTable {
 public:
  explicit RouteTable(std::vector<Route> routes);  // CHECKs HR-1

  // The first route whose path fits decides the path; among the routes with this path the method
  // decides. Answers with 405, and the header Allow, where no route of the path has the method.
  // nullopt where no path fits.
  std::optional<http::HttpAnswer> answer(const http::HttpRequest& request) const;
  // A sentence about a path that no route has: which parts could follow the longest beginning of
  // it that some route has.
  std::string near(const http::HttpRequest& request) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  // The index of the first route whose path fits.
  std::optional<std::size_t> first_fitting(const std::vector<std::string>& asked) const;

  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> parts_;  // of the path of each route: {"api", "v1", …}
};

// The name of a part "{name}" or "{name...}", and whether it stands for several; nullopt for a
// part that stands for itself.
struct PathParameter {
  std::string name;
  bool several = false;
};
std::optional<PathParameter> path_parameter(std::string_view part);
std::vector<std::string> path_parts(std::string_view path);  // between slashes, without empty ones

}  // namespace tandem::api
