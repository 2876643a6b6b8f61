// The header fields of a message of Boost.Beast as HttpHeaders. Internal to runtime/http: shared by
// server and client. Lower case is made by hand, because the C library's depends on the locale.
#pragma once

#include <string>
#include <utility>

#include "runtime/http/http.h"

namespace tandem::http {

// Fields is a request, response or field list of Beast: a range of fields, each with name_string()
// and value(). Fields without a well-known name are kept as well. The order of different names is
// lost.
template <class Fields>
HttpHeaders headers_of(const Fields& fields) {
  HttpHeaders headers;
  for (const auto& field : fields) {
    std::string name(field.name_string());
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const std::string value(field.value());
    // A repeated field: its values become one list, as RFC 9110 allows.
    const auto [at, is_new] = headers.emplace(std::move(name), value);
    if (!is_new) at->second += ", " + value;
  }
  return headers;
}

}  // namespace tandem::http
