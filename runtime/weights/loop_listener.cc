#include "runtime/weights/loop_listener.h"

#include <boost/asio/post.hpp>
#include <future>
#include <utility>

#include "runtime/base/clock.h"

namespace tandem::weights {
namespace {

constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<LoopListener>> LoopListener::listen(const std::string& host, Take take) {
  std::unique_ptr<LoopListener> made(new LoopListener(std::move(take)));
  boost::asio::ip::tcp::acceptor& acceptor = made->acceptor_;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  if (!error) acceptor.open(boost::asio::ip::tcp::endpoint(address, 0).protocol(), error);
  if (!error) acceptor.bind({address, 0}, error);
  if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error) return link::listen_error({.host = host}, error.value());
  made->endpoint_ = {.host = host, .port = acceptor.local_endpoint().port()};
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
