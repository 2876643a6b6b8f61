#include "runtime/link/ticker.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

namespace tandem::link {

struct Ticker::State : std::enable_shared_from_this<State> {
  State(IoThread& io, Duration e, std::function<void(Time)> t)
      : timer(io.loop()), every(e), tick(std::move(t)) {}

  void arm() {
    timer.expires_after(every);
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      // A cancelled timer whose time had come already still reports success.
      if (error || self->stopped) return;
      self->tick(steady_now());
      // `tick` may have stopped the ticker.
      if (!self->stopped) self->arm();
    });
  }

  boost::asio::steady_timer timer;
  const Duration every;
  const std::function<void(Time)> tick;
  bool stopped = false;
};

Ticker::Ticker(IoThread& io, Duration every, std::function<void(Time)> tick)
    : state_(std::make_shared<State>(io, every, std::move(tick))) {
  state_->arm();
}

// A tick that called stop() may still be running on the IoThread while another thread destroys the
// ticker, so a state that is stopped is not written again.
Ticker::~Ticker() {
  if (!state_->stopped) stop();
}

void Ticker::stop() {
  state_->stopped = true;
  state_->timer.cancel();
}

}  // namespace tandem::link
