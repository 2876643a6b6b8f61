#include "runtime/link/io_thread.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "runtime/base/check.h"
#include "runtime/link/key_gate.h"

namespace tandem::link {

struct IoThread::State {
  boost::asio::io_context loop{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
      loop.get_executor()};
  zmq::context_t context{1};
  // Its socket belongs to `context`, so it is destroyed first.
  std::unique_ptr<KeyGate> key_gate;
  std::thread thread;
};

IoThread::IoThread(const char* name) : state_(std::make_unique<State>()) {
  state_->thread = std::thread([this] { state_->loop.run(); });
  pthread_setname_np(state_->thread.native_handle(), name);
}

IoThread::~IoThread() {
  CHECK(!on_this_thread());
  // The order matters: the gate's socket is used by the loop's thread until that thread has ended.
  state_->loop.stop();
  state_->thread.join();
  state_->key_gate.reset();
}

void IoThread::post(std::function<void()> work) {
  boost::asio::post(state_->loop, std::move(work));
}

void IoThread::run(const std::function<void()>& work) {
  if (on_this_thread()) return work();
  std::promise<void> done;
  post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

bool IoThread::on_this_thread() const {
  return state_->thread.get_id() == std::this_thread::get_id();
}

boost::asio::io_context& IoThread::loop() { return state_->loop; }
zmq::context_t& IoThread::context() { return state_->context; }

KeyGate& IoThread::key_gate() {
  CHECK(on_this_thread());
  if (!state_->key_gate)
    state_->key_gate = std::make_unique<KeyGate>(state_->loop, state_->context);
  return *state_->key_gate;
}

}  // namespace tandem::link
