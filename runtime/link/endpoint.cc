#include "runtime/link/endpoint.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <cerrno>
#include <charconv>

namespace tandem::link {

namespace {

constexpr std::string_view kIpc = "ipc://";

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_local()) return std::string(kIpc) + endpoint.path;
  return endpoint.host + ":" + std::to_string(endpoint.port);
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
  // The last colon, since a host may be an IPv6 address.
  const auto colon = rest.rfind(':');
  const Error error{ErrorCode::kInvalid, "'" + std::string(text) + "' is not an address", "",
                    "write host:port, like 127.0.0.1:7420"};
  if (colon == std::string_view::npos || colon == 0) return error;
  Endpoint endpoint{.host = std::string(rest.substr(0, colon))};
  const char* const end = rest.data() + rest.size();
  const auto [stopped, failure] = std::from_chars(rest.data() + colon + 1, end, endpoint.port);
  // from_chars refuses a number that does not fit into a port.
  if (failure != std::errc() || stopped != end) return error;
  return endpoint;
}

// Connecting a UDP socket sends nothing: the kernel only chooses the route and the address.
Result<Way> way_to(const Endpoint& to) {
  using boost::asio::ip::udp;
  boost::asio::io_context loop;
  boost::system::error_code error;
  const auto found =
      udp::resolver(loop).resolve(udp::v4(), to.host, std::to_string(to.port), error);
  for (const auto& entry : found) {
    udp::socket socket(loop);
    socket.connect(entry.endpoint(), error);
    if (error) continue;
    const auto local = socket.local_endpoint(error);
    if (!error) return Way{local.address().to_string(), entry.endpoint().address().to_string()};
  }
  return Error{ErrorCode::kUnreachable, "no route leads there: " + error.message(), to_string(to),
               "check --controller, or name this machine's address with --bind"};
}

Result<std::string> local_address_towards(const Endpoint& to) {
  auto way = way_to(to);
  return way ? Result<std::string>(std::move(way->ours)) : way.error();
}

Error listen_error(const Endpoint& at, int error_number) {
  return {ErrorCode::kFailed, "cannot listen: " + errno_text(error_number), to_string(at),
          error_number == EADDRNOTAVAIL ? "name an address of this machine with --bind"
                                        : "choose a free port with --port, or 0 for any"};
}

}  // namespace tandem::link
