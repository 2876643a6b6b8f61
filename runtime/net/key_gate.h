// Answers ZeroMQ's question (rfc.zeromq.org/spec/27, ZAP) whether a client's key may connect. One
// for each ZeroMQ context; without one, libzmq lets any key in. Internal to runtime/net.
//
// All calls, and all work, on the IoThread whose loop it was given.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}
namespace zmq {
class context_t;
}

namespace tandem::runtime {

class KeyGate {
 public:
  KeyGate(boost::asio::io_context& loop, zmq::context_t& context);
  ~KeyGate();

  // The name of a new domain (ZMQ_ZAP_DOMAIN), to whose sockets these clients (Z85), and no others,
  // may connect.
  std::string make_domain(const std::vector<std::string>& client_keys);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::runtime
