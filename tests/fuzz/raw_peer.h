// A peer that speaks ZeroMQ and nothing of ours: it sends the bytes of an input as messages to a
// real server, and hears the answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "runtime/link/curve.h"
#include "runtime/link/endpoint.h"

namespace tandem::fuzz {

class RawPeer {
 public:
  // `keys` for a server that is reached by TCP.
  RawPeer(const link::Endpoint& to, const std::string& routing_id,
          const std::optional<link::CurveClient>& keys = {});

  // An empty body makes no second part.
  void send(std::string_view head, std::string_view body = {});
  // The parts of the next answer; CHECKs that one comes.
  std::vector<std::string> receive();
  // The parts of an answer that is here already.
  std::optional<std::vector<std::string>> receive_now();

 private:
  std::optional<std::vector<std::string>> receive(zmq::recv_flags flags);

  zmq::socket_t socket_;
};

}  // namespace tandem::fuzz
