// The peer of weights that are fetched by TCP: bare ZeroMQ DEALER sockets, one in another process,
// which sends a stream of 1 MiB messages over TCP loopback for each request. Both ends leave the
// bytes where they are: the sender's messages all show the same memory, and the receiver drops
// what arrives, so nothing but ZeroMQ is measured.
#pragma once

#include <cstdint>
#include <span>
#include <zmq.hpp>

#include "tests/bench/children.h"

namespace tandem::bench {

enum class Encryption { kNone, kCurve };

inline constexpr std::uint64_t kStreamMessageBytes = std::uint64_t{1} << 20;

class RawStream {
 public:
  explicit RawStream(Encryption encryption);
  void fetch(std::uint64_t bytes);  // whole messages; returns when the last one has come

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  Children sender_;
};

// The sender's role; `words` are argv behind its name.
inline constexpr const char* kRawSender = "raw_sender";
int run_raw_sender(std::span<const char* const> words);

}  // namespace tandem::bench
