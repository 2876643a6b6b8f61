#include "runtime/link/endpoint.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <cctype>
#include <cerrno>
#include <charconv>

namespace tandem::link {

namespace {

constexpr std::string_view kIpc = "ipc://";

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_local()) return std::string(kIpc) + endpoint.path;
  const std::string port = ":" + std::to_string(endpoint.port);
  return is_ipv6(endpoint.host) ? "[" + endpoint.host + "]" + port : endpoint.host + port;
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  if (text.starts_with(kIpc)) {
    Endpoint local{.path = std::string(text.substr(kIpc.size()))};
    if (local.path.starts_with('/') && local.path.size() <= kSocketPathMax) return local;
    return Error{ErrorCode::kInvalid, "'" + std::string(text) + "' is not a Unix socket", "",
                 "write ipc:// and an absolute path of at most " + std::to_string(kSocketPathMax) +
                     " bytes"};
  }
  std::string_view rest = text;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto colon = rest.rfind(':');
  const Error error{ErrorCode::kInvalid, "'" + std::string(text) + "' is not an address", "",
                    "write host:port, like 127.0.0.1:7420 or [fd00::1]:7420"};
  if (colon == std::string_view::npos || colon == 0) return error;
  std::string_view host = rest.substr(0, colon);
  if (host.find_first_of(":[]") != std::string_view::npos) {  // only an IPv6 address has these
    if (!host.starts_with('[') || !host.ends_with(']')) return error;
    host = host.substr(1, host.size() - 2);
    if (!is_ipv6(host)) return error;
  }
  Endpoint endpoint{.host = std::string(host)};
  const char* const end = rest.data() + rest.size();
  const auto [stopped, failure] = std::from_chars(rest.data() + colon + 1, end, endpoint.port);
  // from_chars refuses a number that does not fit into a port.
  if (failure != std::errc() || stopped != end) return error;
  return endpoint;
}

bool is_ipv6(std::string_view host) {
  if (host.find(':') == std::string_view::npos || host.find('%') != std::string_view::npos)
    return false;
  boost::system::error_code error;
  boost::asio::ip::make_address_v6(std::string(host), error);
  return !error;
}

bool is_address(std::string_view host) {
  boost::system::error_code error;
  boost::asio::ip::make_address_v4(std::string(host), error);
  return !error || is_ipv6(host);
}

bool is_host(std::string_view text) {
  const auto letter = [](unsigned char c) { return std::isalnum(c) != 0; };
  const auto plain = [&](unsigned char c) { return letter(c) || c == '.' || c == '-'; };
  const bool is_name = !text.empty() && letter(static_cast<unsigned char>(text[0])) &&
                       std::ranges::all_of(text, plain);
  return is_name || is_ipv6(text);
}

bool is_loopback(std::string_view host) {
  return is_address(host) && boost::asio::ip::make_address(std::string(host)).is_loopback();
}

bool is_any(std::string_view host) {
  return is_address(host) && boost::asio::ip::make_address(std::string(host)).is_unspecified();
}

// Connecting a UDP socket sends nothing: the kernel only chooses the route and the address.
Result<Way> way_to(const Endpoint& to) {
  using boost::asio::ip::udp;
  boost::asio::io_context loop;
  boost::system::error_code error;
  for (const udp& family : {udp::v4(), udp::v6()}) {
    if (family == udp::v4() && is_ipv6(to.host)) continue;
    boost::system::error_code none;
    const auto found = udp::resolver(loop).resolve(family, to.host, std::to_string(to.port), none);
    if (!error) error = none;  // that of IPv4 is told
    for (const auto& entry : found) {
      udp::socket socket(loop);
      socket.connect(entry.endpoint(), error);
      if (error) continue;
      const auto local = socket.local_endpoint(error);
      if (!error) return Way{local.address().to_string(), entry.endpoint().address().to_string()};
    }
  }
  return Error{ErrorCode::kUnreachable, "no route leads there: " + error.message(), to_string(to),
               "check --controller, or name this machine's address with --bind"};
}

Result<std::string> local_address_towards(const Endpoint& to) {
  auto way = way_to(to);
  return way ? Result<std::string>(std::move(way->ours)) : way.error();
}

Endpoint in_known_family(Endpoint to) {
  if (to.is_local() || is_address(to.host)) return to;
  if (const auto way = way_to(to); way && is_ipv6(way->theirs)) to.host = way->theirs;
  return to;
}

Error listen_error(const Endpoint& at, int error_number) {
  return {.code = ErrorCode::kFailed,
          .message = "cannot listen: " + errno_text(error_number),
          .where = to_string(at),
          .help = error_number == EADDRNOTAVAIL ? "name an address of this machine with --bind"
                                                : "choose a free port with --port, or 0 for any",
          .os_error = error_number};
}

}  // namespace tandem::link
