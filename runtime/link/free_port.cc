#include "runtime/link/free_port.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "runtime/link/endpoint.h"

namespace tandem::link {

Result<std::uint16_t> free_port() {
  using boost::asio::ip::tcp;
  boost::asio::io_context loop;
  tcp::acceptor acceptor(loop);
  boost::system::error_code error;
  const tcp::endpoint any(boost::asio::ip::address_v4::loopback(), 0);
  acceptor.open(any.protocol(), error);
  if (!error) acceptor.bind(any, error);
  if (error) return listen_error({}, error.value());
  return acceptor.local_endpoint().port();
}

}  // namespace tandem::link
