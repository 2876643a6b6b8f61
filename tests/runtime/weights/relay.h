// A TCP relay on loopback that a test puts between a subscriber and its publisher, to cut, stall or
// damage the bytes that pass. Calls from any thread; each is done when it returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/link/endpoint.h"
#include "runtime/link/io_thread.h"

namespace tandem::weights {

class Relay {
 public:
  explicit Relay(const link::Endpoint& to);
  ~Relay();

  const link::Endpoint& at() const;
  std::uint64_t connections() const;  // that were ever taken
  std::uint64_t open() const;         // connections that neither end has ended
  std::uint64_t bytes() const;        // that went to those who dialled

  // Faults happen when so many more bytes have gone to those who dialled. A stall or a flip happens
  // once; cut_after() cuts all connections after each of its numbers of bytes, and new ones are
  // taken.
  void cut_after(const std::vector<std::uint64_t>& more);
  void stall_after(std::uint64_t more);  // nothing moves any more, but the connections stay
  void flip_after(std::uint64_t more);   // a bit of the byte that then passes

  void block();  // cuts all connections, and closes every new one at once
  void heal();   // ends block() and a stall
  bool flipped() const;

 private:
  struct State;
  link::IoThread io_{"relay"};
  std::shared_ptr<State> state_;
};

}  // namespace tandem::weights
