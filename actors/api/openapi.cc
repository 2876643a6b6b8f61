// A stream of lines is described by the schema of one line, since OpenAPI 3.1 has no word for a
// sequence. A path parameter that may have slashes is described as any other: clients that are made
// from the document send %2F, which the server takes as well.
#include "actors/api/openapi.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "actors/api/schema.h"
#include "actors/api/schemas.h"
#include "runtime/base/check.h"

namespace tandem::api {
namespace {

using nlohmann::json;

constexpr const char* kToken = "token";  // the name of the security scheme
constexpr const char* kAbout =
    "Jobs, actors, nodes and runs of a Tandem controller. Fields and parameters are added in later "
    "versions and never renamed: clients ignore fields that they do not know. Times are "
    "milliseconds since 1970, durations end in `_s` or `_seconds`, and a value that is not known "
    "is null.";
constexpr const char* kAboutToken =
    "The content of TANDEM_HOME/token. The web page has a cookie instead.";

struct ParameterText {
  const char* name;
  const char* about;
};
constexpr ParameterText kPathParameters[] = {
    {"job", "A job's id, as `arithmetic-grpo-1`, or its name, which means the newest that runs."},
    {"run", "A run's id, or a name that one run alone has."},
    {"actor",
     "`JOB/ROLE/INDEX`, or `ROLE/INDEX` where one job alone has such an actor. Slashes are sent "
     "as they are or as %2F."},
    {"node", "A node's name."},
    {"group", "A group's number."},
    {"log",
     "`ROLE/INDEX` for the log of its newest incarnation, or `ROLE/INDEX/INCARNATION`. Slashes are "
     "sent as they are or as %2F."},
};

// Errors of all routes; those that are not open have kWrongToken as well.
constexpr RouteError kErrorsOfAll[] = {
    {403, "The request comes from a page of another server."},
    {421, "The header Host is no name of this server."},
    {500, "It failed; the message says why."},
    {503, "The controller, or the actor that is asked, does not answer."},
    {504, "It did not come about in time."},
};
constexpr RouteError kWrongToken{401, "The token is missing or wrong."};
constexpr RouteError kLargeBody{413, "The body is too large."};

// "/api/v1/actors/{actor...}" -> "/api/v1/actors/{actor}".
std::string documented_path(const std::string& path) {
  std::string text;
  for (const std::string& part : path_parts(path)) {
    const auto parameter = path_parameter(part);
    text += "/" + (parameter ? "{" + parameter->name + "}" : part);
  }
  return text;
}

json path_parameter_json(const std::string& name) {
  const auto* const known = std::ranges::find_if(
      kPathParameters, [&](const ParameterText& text) { return text.name == name; });
  CHECK(known != std::end(kPathParameters));
  return {{"name", name},
          {"in", "path"},
          {"required", true},
          {"description", known->about},
          {"schema", schema::text()}};
}

json query_schema(const QueryParameter& what) {
  json described;
  switch (what.kind) {
    case QueryKind::kText:
      return schema::text();
    case QueryKind::kWords:
      described = schema::list_of(schema::text());
      described["maxItems"] = what.words_max;
      return described;
    case QueryKind::kNumber:
      described = schema::integer();
      described["minimum"] = what.bounds.least;
      described["maximum"] = what.bounds.most;
      if (what.usual) described["default"] = *what.usual;
      return described;
    case QueryKind::kFlag:
      described = schema::integer();
      described["enum"] = json::array({0, 1});
      described["default"] = 0;
      return described;
    case QueryKind::kChoice:
      described = schema::text();
      described["enum"] = std::vector<std::string>(what.choices.begin(), what.choices.end());
      if (what.usual_choice) described["default"] = what.usual_choice;
      return described;
  }
  CHECK(false);
}

json query_json(const QueryParameter& what) {
  json parameter{{"name", what.name},
                 {"in", "query"},
                 {"description", what.about},
                 {"schema", query_schema(what)}};
  if (what.kind == QueryKind::kWords) {  // "a,b" and not "a&b"
    parameter["style"] = "form";
    parameter["explode"] = false;
  }
  return parameter;
}

json content_json(const std::vector<Body>& bodies) {
  json content = json::object();
  for (const Body& body : bodies) content[body.media_type] = {{"schema", body.schema}};
  return content;
}

std::string about_bodies(const std::vector<Body>& bodies) {
  std::string text;
  for (const Body& body : bodies)
    if (!body.about.empty()) text += (text.empty() ? "" : " ") + body.about;
  return text.empty() ? "Done." : text;
}

json responses_json(const Route& route) {
  json responses = json::object();
  responses["200"] = {{"description", about_bodies(route.answers)},
                      {"content", content_json(route.answers)}};
  std::vector<RouteError> errors = route.errors;
  errors.insert(errors.end(), std::begin(kErrorsOfAll), std::end(kErrorsOfAll));
  if (!route.open) errors.push_back(kWrongToken);
  if (route.body) errors.push_back(kLargeBody);
  for (const RouteError& error : errors) {
    json& response = responses[std::to_string(error.status)];
    if (!response.is_null()) continue;  // the route's own words come first
    response = {{"description", error.when},
                {"content", content_json({json_body(schema::ref("Error"), "")})}};
  }
  return responses;
}

// The first part behind /api/v1, by which clients group functions.
std::string tag_of(const std::vector<std::string>& parts) {
  return parts.size() > 2 && parts[0] == "api" ? parts[2] : "process";
}

json operation_json(const Route& route) {
  const auto parts = path_parts(route.path);
  json operation{{"operationId", route.id},
                 {"summary", route.summary},
                 {"tags", json::array({tag_of(parts)})},
                 {"parameters", json::array()},
                 {"responses", responses_json(route)}};
  if (!route.about.empty()) operation["description"] = route.about;
  for (const std::string& part : parts)
    if (const auto parameter = path_parameter(part))
      operation["parameters"].push_back(path_parameter_json(parameter->name));
  for (const QueryParameter& what : route.query)
    operation["parameters"].push_back(query_json(what));
  if (route.body)
    operation["requestBody"] = {{"required", true},
                                {"description", route.body->about},
                                {"content", content_json({*route.body})}};
  if (route.open) operation["security"] = json::array();
  return operation;
}

// The names of HTTP methods are in lower case in OpenAPI.
std::string in_lower_case(std::string method) {
  for (char& c : method)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return method;
}

}  // namespace

json openapi_document(std::span<const Route> routes, const std::string& version) {
  json paths = json::object();
  for (const Route& route : routes)
    paths[documented_path(route.path)][in_lower_case(route.method)] = operation_json(route);
  const json scheme{{"type", "http"}, {"scheme", "bearer"}, {"description", kAboutToken}};
  json security = json::object();
  security[kToken] = json::array();
  json schemes = json::object();
  schemes[kToken] = scheme;
  return {
      {"openapi", "3.1.0"},
      {"info", {{"title", "Tandem"}, {"version", version}, {"description", kAbout}}},
      {"servers", json::array({{{"url", "/"}}})},
      {"security", json::array({security})},
      {"paths", std::move(paths)},
      {"components", {{"schemas", component_schemas()}, {"securitySchemes", std::move(schemes)}}}};
}

}  // namespace tandem::api
