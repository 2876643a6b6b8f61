// The ports at which a host listens for other hosts, so that a firewall can open those and no
// others: written and read as "7420-7499". A socket whose port does not matter takes a free one of
// the range; without a range the kernel chooses.
//
//   PN-1  With a range nothing listens outside of it, but for a port that is named. Where all of
//         its ports are taken, the error names the range.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/link/endpoint.h"

namespace tandem::link {

struct PortRange {
  std::uint16_t first = 0, last = 0;  // both are in it; zeros: any port
  bool is_any() const { return first == 0; }
  bool has(int port) const { return is_any() || (port >= first && port <= last); }
  bool operator==(const PortRange&) const = default;
};

std::string to_string(const PortRange& ports);  // empty for any port
// The range that a user has written. Errors: kInvalid.
Result<PortRange> parse_port_range(std::string_view text);

// Listens at `at` by `listen`, which gets a port and returns where it listens. Where at.port is 0,
// the ports of the range are tried one after the other, from one that differs between processes,
// until `listen` gives another error than that the port is taken (Error::os_error).
Result<Endpoint> listen_within(const PortRange& ports, Endpoint at,
                               const std::function<Result<Endpoint>(const Endpoint&)>& listen);

}  // namespace tandem::link
