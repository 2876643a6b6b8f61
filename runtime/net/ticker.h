// Calls a function at regular times on an IoThread, until stopped or destroyed there; one that has
// been stopped may be destroyed anywhere. The ZeroMQ loops hang their deadlines on it, and it hides
// an edge of a descriptor that was missed.
#pragma once

#include <functional>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/net/io_thread.h"

namespace tandem::runtime {

class Ticker {
 public:
  Ticker(IoThread& io, Duration every, std::function<void(Time)> tick);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  void stop();  // `tick` is not called any more; from within it, too

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::runtime
