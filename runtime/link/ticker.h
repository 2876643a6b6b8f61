// A timer that calls a function at regular times on an IoThread, until it is stopped or destroyed
// there. A ticker that has been stopped may be destroyed on any thread. The ZeroMQ loops check
// their deadlines in it and pump their socket, which makes up for a missed edge of the descriptor.
#pragma once

#include <functional>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/link/io_thread.h"

namespace tandem::link {

class Ticker {
 public:
  // The first call comes after `every`; the pause between two calls is at least `every`. `io` must
  // outlive the ticker.
  Ticker(IoThread& io, Duration every, std::function<void(Time)> tick);
  ~Ticker();
  // The destructor runs on the IoThread, or anywhere after stop().
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  void stop();  // `tick` is not called any more; may be called from within `tick`

 private:
  // Shared with the timer's pending wait, which may outlast the ticker.
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::link
