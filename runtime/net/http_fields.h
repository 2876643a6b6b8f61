// Beast's header fields as HttpHeaders. Internal to runtime/net: server and client.
#pragma once

#include <string>
#include <utility>

#include "runtime/net/http.h"

namespace tandem::runtime {

template <class Fields>
HttpHeaders headers_of(const Fields& fields) {
  HttpHeaders headers;
  for (const auto& field : fields) {
    std::string name(field.name_string());
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const std::string value(field.value());
    const auto [at, is_new] = headers.emplace(std::move(name), value);
    if (!is_new) at->second += ", " + value;
  }
  return headers;
}

}  // namespace tandem::runtime
