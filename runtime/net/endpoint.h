// Where something listens: host and port, printed and parsed as "127.0.0.1:7420".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::runtime {

inline constexpr const char* kLoopback = "127.0.0.1";

struct Endpoint {
  std::string host = kLoopback;
  std::uint16_t port = 0;  // 0 in a request to listen: any free port
  bool operator==(const Endpoint&) const = default;
};

std::string to_string(const Endpoint& endpoint);
// "host:port"; an "http://" in front and a "/" behind are accepted. Errors: kInvalid.
Result<Endpoint> parse_endpoint(std::string_view text);

// "cannot listen: Address already in use", with the address and what to do.
Error listen_error(const Endpoint& at, int error_number);

}  // namespace tandem::runtime
