// An address that a socket listens at: host and port, printed and parsed as "127.0.0.1:7420" or
// "[fd00::1]:7420", or a Unix socket, as "ipc:///run/user/1000/tandem-sock-x1/link".
//
// IPv6 addresses have no zone: one of a single link (fe80::) means nothing to other hosts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::link {

inline constexpr const char* kLoopback = "127.0.0.1";
inline constexpr std::size_t kSocketPathMax = 107;  // sockaddr_un, without the zero at its end

struct Endpoint {
  std::string host = kLoopback;  // a name, or an address; of IPv6 without brackets
  std::uint16_t port = 0;        // 0 in a request to listen: any free port
  std::string path = {};         // not empty: a Unix socket there, and host and port are not used
  // A Unix socket, which needs no keys (curve.h).
  bool is_local() const { return !path.empty(); }
  bool operator==(const Endpoint&) const = default;
};

std::string to_string(const Endpoint& endpoint);
// "host:port", where an "http://" in front and a "/" behind are accepted, or "ipc://" and a path.
// Errors: kInvalid.
Result<Endpoint> parse_endpoint(std::string_view text);

bool is_ipv6(std::string_view host);      // an address in digits
bool is_address(std::string_view host);   // of either kind, in digits
bool is_host(std::string_view text);      // an address, or what may be a host's name
bool is_loopback(std::string_view host);  // an address that only this host reaches
bool is_any(std::string_view host);       // "0.0.0.0" or "::": all addresses of this host

// The addresses of both ends of the way from this host to another: the other end's address as it is
// looked up, of IPv6 where it has no other, and the one at which this host can be reached from
// there. They are the same where `to` is this host, by any but its loopback address. Errors:
// kUnreachable, as below.
struct Way {
  std::string ours, theirs;
};
Result<Way> way_to(const Endpoint& to);

// The address of this host from which it reaches `to`, which other hosts of that network can reach
// in turn. Errors: kUnreachable where `to` has no address or no route leads there.
Result<std::string> local_address_towards(const Endpoint& to);

// `to` for ZeroMQ, which looks names up as those of IPv4: a name that has addresses of IPv6 alone
// becomes one of these. Names are looked up, which may take its time.
Endpoint in_known_family(Endpoint to);

// "cannot listen: Address already in use", with the address and what to do.
Error listen_error(const Endpoint& at, int error_number);

}  // namespace tandem::link
