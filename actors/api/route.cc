#include "actors/api/route.h"

#include <algorithm>
#include <set>

#include "actors/api/schema.h"
#include "runtime/base/check.h"

namespace tandem::api {
namespace {

using http::HttpAnswer;
using http::HttpRequest;
using Parts = std::vector<std::string>;

std::string joined(const Parts& parts, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += (i > from ? "/" : "") + parts[i];
  return text;
}

// The values of the parameters of a path that fits; nullopt where it does not fit.
std::optional<std::map<std::string, std::string, std::less<>>> fit(const Parts& path,
                                                                   const Parts& asked) {
  std::map<std::string, std::string, std::less<>> values;
  std::size_t at = 0;  // in `asked`
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::size_t behind = path.size() - i - 1;  // parts that must still find their place
    if (at + behind >= asked.size()) return std::nullopt;
    const auto parameter = path_parameter(path[i]);
    const std::size_t end = parameter && parameter->several ? asked.size() - behind : at + 1;
    if (parameter)
      values[parameter->name] = joined(asked, at, end);
    else if (path[i] != asked[at])
      return std::nullopt;
    at = end;
  }
  if (at != asked.size()) return std::nullopt;
  return values;
}

// How many parts of `asked` a path has in common with it, from the left.
std::size_t in_common(const Parts& path, const Parts& asked) {
  std::size_t n = 0;
  while (n < path.size() && n < asked.size() && (path_parameter(path[n]) || path[n] == asked[n]))
    ++n;
  return n;
}

// A part of a path as an error shows it: a parameter in capitals, "{log...}" as "LOG".
std::string shown(const std::string& part) {
  const auto parameter = path_parameter(part);
  if (!parameter) return part;
  std::string name = parameter->name;
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name;
}

std::string listed(const std::set<std::string>& words) {
  std::string text;
  std::size_t left = words.size();
  for (const std::string& word : words) {
    if (!text.empty()) text += left == 1 ? " and " : ", ";
    text += word;
    --left;
  }
  return text;
}

}  // namespace

Body json_body(nlohmann::json schema, std::string about) {
  return {"application/json", std::move(schema), std::move(about)};
}

Body json_lines_body(nlohmann::json schema, std::string about) {
  return {"application/x-ndjson", std::move(schema), std::move(about)};
}

Body text_body(std::string about) { return {"text/plain", schema::text(), std::move(about)}; }

std::optional<PathParameter> path_parameter(std::string_view part) {
  if (!part.starts_with('{') || !part.ends_with('}')) return std::nullopt;
  std::string_view name = part.substr(1, part.size() - 2);
  const bool several = name.ends_with("...");
  if (several) name.remove_suffix(3);
  return PathParameter{std::string(name), several};
}

std::vector<std::string> path_parts(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

const std::string& Call::at(std::string_view parameter) const {
  const auto found = path.find(parameter);
  CHECK(found != path.end());
  return found->second;
}

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {
  for (const Route& route : routes_) parts_.push_back(path_parts(route.path));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    CHECK(seen.insert(routes_[i].method + routes_[i].path).second);
    // HR-1: names in place of the parameters; a parameter of several parts gets one, then two.
    for (const std::size_t several : {1, 2}) {
      Parts asked;
      for (const std::string& part : parts_[i]) {
        const auto parameter = path_parameter(part);
        for (std::size_t n = 0; n < (parameter && parameter->several ? several : 1); ++n)
          asked.push_back(parameter ? "name" : part);
      }
      const auto first = first_fitting(asked);
      CHECK(first && routes_[*first].path == routes_[i].path);
    }
  }
}

std::optional<std::size_t> RouteTable::first_fitting(const Parts& asked) const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (fit(parts_[i], asked)) return i;
  return std::nullopt;
}

std::optional<HttpAnswer> RouteTable::answer(const HttpRequest& request) const {
  const auto first = first_fitting(request.segments);
  if (!first) return std::nullopt;
  std::set<std::string> methods;
  for (const Route& route : routes_) {
    if (route.path != routes_[*first].path) continue;
    if (route.method == request.method)
      return route.handler({request, *fit(parts_[*first], request.segments)});
    methods.insert(route.method);
  }
  auto refused =
      http::error_response(405, Error{ErrorCode::kInvalid, request.method + " is not possible here",
                                      "", "this path takes " + listed(methods)});
  std::string& allow = refused.headers["allow"];
  for (const std::string& method : methods) allow += (allow.empty() ? "" : ", ") + method;
  return refused;
}

std::string RouteTable::near(const HttpRequest& request) const {
  std::size_t longest = 0;
  std::set<std::string> next;
  for (const Parts& path : parts_) {
    const std::size_t n = in_common(path, request.segments);
    if (n < longest || n == path.size()) continue;
    if (n > longest) next.clear();
    longest = n;
    next.insert(shown(path[n]));
  }
  return "below /" + joined(request.segments, 0, longest) + " there are " + listed(next);
}

}  // namespace tandem::api
