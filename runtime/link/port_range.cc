#include "runtime/link/port_range.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace tandem::link {
namespace {

// Spreads neighbouring pids over a range (Knuth's multiplicative hash), so that processes that
// start together seldom try the same ports.
constexpr std::uint32_t kSpread = 2654435761u;

bool read_port(std::string_view text, std::uint16_t& port) {
  const char* const end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, port);
  return failure == std::errc() && stopped == end && port > 0;
}

}  // namespace

std::string to_string(const PortRange& ports) {
  if (ports.is_any()) return "";
  return std::to_string(ports.first) + "-" + std::to_string(ports.last);
}

Result<PortRange> parse_port_range(std::string_view text) {
  PortRange read;
  const auto dash = text.find('-');
  const bool numbers = dash != std::string_view::npos &&
                       read_port(text.substr(0, dash), read.first) &&
                       read_port(text.substr(dash + 1), read.last);
  if (numbers && read.first <= read.last) return read;
  return Error{ErrorCode::kInvalid,
               "`" + std::string(text) + "` is not a range of ports" +
                   (numbers ? ": its end is before its beginning" : ""),
               "", "write the first and the last of 1 to 65535, as in 7420-7499"};
}

Result<Endpoint> listen_within(const PortRange& ports, Endpoint at,
                               const std::function<Result<Endpoint>(const Endpoint&)>& listen) {
  if (ports.is_any() || at.is_local() || at.port != 0) return listen(at);
  const std::uint32_t count = ports.last - ports.first + 1u;
  const std::uint32_t start = static_cast<std::uint32_t>(::getpid()) * kSpread % count;
  for (std::uint32_t i = 0; i < count; ++i) {
    at.port = static_cast<std::uint16_t>(ports.first + (start + i) % count);
    auto bound = listen(at);
    if (bound || bound.error().os_error != EADDRINUSE) return bound;
  }
  return Error{.code = ErrorCode::kUnreachable,
               .message = "cannot listen: all ports of " + to_string(ports) + " are taken",
               .where = at.host,
               .help = "give a wider range with --ports, or end what else listens there",
               .os_error = EADDRINUSE};
}

}  // namespace tandem::link
