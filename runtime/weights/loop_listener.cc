#include "runtime/weights/loop_listener.h"

#include <boost/asio/post.hpp>
#include <future>
#include <utility>

#include "runtime/base/clock.h"

namespace tandem::weights {
namespace {

constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

Result<link::Endpoint> LoopListener::listen_at(const link::Endpoint& at) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(at.host, error);
  const boost::asio::ip::tcp::endpoint place(address, at.port);
  if (!error) acceptor_.open(place.protocol(), error);
  if (!error) acceptor_.set_option(boost::asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(place, error);
  if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
  if (!error) return link::Endpoint{.host = at.host, .port = acceptor_.local_endpoint().port()};
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  return link::listen_error(at, error.value());
}

Result<std::unique_ptr<LoopListener>> LoopListener::listen(const std::string& host,
                                                           const link::PortRange& ports,
                                                           Take take) {
  std::unique_ptr<LoopListener> made(new LoopListener(std::move(take)));
  auto bound = link::listen_within(
      ports, {.host = host}, [&made](const link::Endpoint& at) { return made->listen_at(at); });
  if (!bound) return bound.error();
  made->endpoint_ = *std::move(bound);
  made->accept();
  made->thread_ = std::thread([loop = &made->loop_] { loop->run(); });
  return made;
}

void LoopListener::accept() {
  acceptor_.async_accept(
      [this](boost::system::error_code error, boost::asio::ip::tcp::socket socket) {
        if (error == boost::asio::error::operation_aborted) return;
        if (error) {  // no descriptor is left, for instance
          pause_.expires_after(kAcceptPause);
          return pause_.async_wait([this](boost::system::error_code ended) {
            if (!ended) accept();
          });
        }
        take_(std::move(socket));
        accept();
      });
}

void LoopListener::perform(const std::function<void()>& work) {
  std::promise<void> done;
  boost::asio::post(loop_, [&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

void LoopListener::stop() {
  if (!thread_.joinable()) return;
  loop_.stop();
  thread_.join();
}

}  // namespace tandem::weights
