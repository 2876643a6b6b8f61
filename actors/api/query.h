// The parameters of the HTTP API's queries as values: one declaration both reads a parameter from a
// request and describes the parameter to clients (openapi.h), so that the two cannot differ. Not
// here: which route takes which parameters (route.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/http/http.h"

namespace tandem::api {

enum class QueryKind : std::uint8_t {
  kText,
  kWords,   // "a,b": words with commas between them
  kNumber,  // a whole number within bounds
  kFlag,    // set by `key`, `key=1` and any other value but 0 and false
  kChoice,  // one of several words
};

// Both are included.
struct Bounds {
  std::int64_t least = 0, most = 0;
};

// A parameter with static storage; texts are literals.
struct QueryParameter {
  const char* name;
  QueryKind kind = QueryKind::kText;
  const char* about = "";  // one or more sentences for people
  Bounds bounds = {};      // of a number
  // The value where a query has none, if there is one: of a number, and of a choice.
  std::optional<std::int64_t> usual = {};
  const char* usual_choice = nullptr;
  std::span<const char* const> choices = {};
  std::size_t words_max = 0;
};

std::string query_text(const http::HttpRequest& request, const QueryParameter& what);  // "": absent
bool query_flag(const http::HttpRequest& request, const QueryParameter& what);
// The words without empty ones. kInvalid where there are more than words_max.
Result<std::vector<std::string>> query_words(const http::HttpRequest& request,
                                             const QueryParameter& what);
// The parameter's usual value where the query has none; nullopt where there is no usual value
// either. kInvalid where the value is no whole number within the bounds.
Result<std::optional<std::int64_t>> query_number(const http::HttpRequest& request,
                                                 const QueryParameter& what);

}  // namespace tandem::api
