// Compares each answer of the HTTP API with the API's own description: whether the route, its
// query, the status, the type of the content and each field of it are in the document that the same
// handler serves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "actors/api/route.h"
#include "runtime/base/json.h"
#include "runtime/http/http_server.h"
#include "tests/actors/api/schema_check.h"

namespace tandem::api {

// The document, and comparisons with it. Any thread.
class ApiDescription {
 public:
  using json = nlohmann::json;

  explicit ApiDescription(json document)
      : document_(std::move(document)), check_(document_["components"]["schemas"]) {}

  // The operation for a request; null where the document has none.
  const json* operation(const http::HttpRequest& request) const {
    const json* path = nullptr;
    std::size_t literal_most = 0;
    for (const auto& [text, operations] : document_["paths"].items()) {
      const auto literal = literals(path_parts(text), request.segments);
      if (!literal || (path && *literal <= literal_most)) continue;
      path = &operations;
      literal_most = *literal;
    }
    std::string method = request.method;
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    return path && path->contains(method) ? &(*path)[method] : nullptr;
  }

  void expect_query(const json& operation, const http::HttpRequest& request) const {
    for (const auto& [name, value] : request.query) {
      bool named = false;
      for (const json& parameter : operation["parameters"])
        named |= parameter["in"] == "query" && parameter["name"] == name;
      EXPECT_TRUE(named) << request.target << ": no parameter " << name;
    }
  }

  // `body` is a whole JSON body, or one line of a stream; anything else is not looked at.
  void expect_body(const json& operation, int status, const std::string& content_type,
                   const std::string& body, const std::string& what) {
    const std::string media = content_type.substr(0, content_type.find(';'));
    const json response = operation["responses"].value(std::to_string(status), json());
    ASSERT_FALSE(response.is_null()) << what << ": status " << status << " is not described";
    ASSERT_TRUE(response["content"].contains(media)) << what << ": " << media;
    if (!media.starts_with("application/")) return;
    expect_fits(response["content"][media]["schema"], body, what);
  }

  void expect_fits(const json& schema, const std::string& body, const std::string& what) {
    const json value = parse_json(body);
    ASSERT_FALSE(value.is_discarded()) << what << ": " << body;
    const std::lock_guard lock(mutex_);
    for (const std::string& fault : check_.faults(schema, value))
      ADD_FAILURE() << what << " " << fault;
  }

 private:
  // How many parts of a path stand for themselves; nullopt where the path does not fit. A parameter
  // may have several parts.
  static std::optional<std::size_t> literals(const std::vector<std::string>& path,
                                             const std::vector<std::string>& asked,
                                             std::size_t i = 0, std::size_t at = 0) {
    if (i == path.size()) return at == asked.size() ? std::optional<std::size_t>(0) : std::nullopt;
    if (at == asked.size()) return std::nullopt;
    if (!path_parameter(path[i])) {
      if (path[i] != asked[at]) return std::nullopt;
      const auto rest = literals(path, asked, i + 1, at + 1);
      return rest ? std::optional(*rest + 1) : std::nullopt;
    }
    for (std::size_t end = at + 1; end <= asked.size(); ++end)
      if (const auto rest = literals(path, asked, i + 1, end)) return rest;
    return std::nullopt;
  }

  const json document_;
  std::mutex mutex_;  // guards check_
  SchemaCheck check_;
};

// A stream that hands lines on and compares each.
class DescribedStream final : public http::HttpStream {
 public:
  DescribedStream(std::shared_ptr<http::HttpStream> to,
                  std::function<void(const std::string& line)> expect)
      : to_(std::move(to)), expect_(std::move(expect)) {}
  bool write(std::string line) override {
    expect_(line);
    return to_->write(std::move(line));
  }
  void close() override { to_->close(); }
  bool open() const override { return to_->open(); }
  std::size_t unsent_bytes() const override { return to_->unsent_bytes(); }

 private:
  const std::shared_ptr<http::HttpStream> to_;
  const std::function<void(const std::string& line)> expect_;
};

// `handler`, whose every answer is compared. A path without an operation must be refused with 404
// or 405; the page's files are in no document.
inline http::HttpHandler described(http::HttpHandler handler) {
  http::HttpRequest get{.method = "GET"};
  EXPECT_TRUE(http::split_target("/api/v1/openapi.json", get));
  const auto served = std::get<http::HttpResponse>(handler(get));
  const auto api = std::make_shared<ApiDescription>(parse_json(served.body));
  return [handler = std::move(handler), api](const http::HttpRequest& request) -> http::HttpAnswer {
    const nlohmann::json* const operation = api->operation(request);
    http::HttpAnswer answer = handler(request);
    const std::string what = request.method + " " + request.target;
    if (auto* whole = std::get_if<http::HttpResponse>(&answer)) {
      if (!operation)
        EXPECT_TRUE(whole->status == 404 || whole->status == 405) << what;
      else
        api->expect_body(*operation, whole->status, whole->content_type, whole->body, what);
      if (operation && whole->status == 200) api->expect_query(*operation, request);
      return answer;
    }
    EXPECT_NE(operation, nullptr) << what;
    if (!operation) return answer;
    api->expect_query(*operation, request);
    if (auto* later = std::get_if<http::HttpLater>(&answer)) {
      later->start = [start = later->start, api, operation, what](auto respond) {
        start([respond, api, operation, what](http::HttpResponse response) {
          api->expect_body(*operation, response.status, response.content_type, response.body, what);
          respond(std::move(response));
        });
      };
      return answer;
    }
    auto& streaming = std::get<http::HttpStreaming>(answer);
    const auto expect = [api, operation, type = streaming.content_type,
                         what](const std::string& line) {
      api->expect_body(*operation, 200, type, line, what);
    };
    streaming.start = [start = streaming.start, expect](std::shared_ptr<http::HttpStream> stream) {
      start(std::make_shared<DescribedStream>(std::move(stream), expect));
    };
    return answer;
  };
}

}  // namespace tandem::api
