// The answer to ZeroMQ's question whether a client's key may connect (rfc.zeromq.org/spec/27, ZAP).
// One gate for each ZeroMQ context; without one, libzmq lets any key in. Internal to runtime/link.
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

namespace tandem::link {

class KeyGate {
 public:
  // Takes the context's ZAP address and begins to answer. Both arguments outlive the gate.
  KeyGate(boost::asio::io_context& loop, zmq::context_t& context);
  // The gate must end before the context, which else would wait for the gate's socket for ever.
  ~KeyGate();

  // The domain of Unix sockets beside places with keys: whoever can open the file may connect,
  // without a key. It is only for sockets in a private folder.
  static constexpr const char* kUnixSockets = "unix";
  // Makes a domain (ZMQ_ZAP_DOMAIN) and returns its name. Only clients with these public keys (Z85,
  // CHECKed) may connect to the sockets of that domain.
  std::string make_domain(const std::vector<std::string>& client_keys);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::link
