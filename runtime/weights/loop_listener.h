// A thread with a loop that takes connections at a free port of one address. Whoever has it gives
// each connection a session that lives by its own operations.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "runtime/base/result.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"

namespace tandem::weights {

class LoopListener {
 public:
  // `take` gets each connection, on the loop's thread, until stop(). Errors: kFailed.
  using Take = std::function<void(boost::asio::ip::tcp::socket)>;
  static Result<std::unique_ptr<LoopListener>> listen(const std::string& host,
                                                      const link::PortRange& ports, Take take);
  ~LoopListener() { stop(); }

  const link::Endpoint& endpoint() const { return endpoint_; }
  // Runs `work` on the loop's thread, and returns when it is done. Not from that thread, and not
  // after stop().
  void perform(const std::function<void()>& work);
  // Ends the thread: no handler runs from then on. What they hold ends with the object.
  void stop();

 private:
  explicit LoopListener(Take take) : take_(std::move(take)) {}
  Result<link::Endpoint> listen_at(const link::Endpoint& at);
  void accept();

  const Take take_;
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> works_ =
      make_work_guard(loop_);
  boost::asio::ip::tcp::acceptor acceptor_{loop_};
  boost::asio::steady_timer pause_{loop_};
  link::Endpoint endpoint_;
  std::thread thread_;
};

}  // namespace tandem::weights
