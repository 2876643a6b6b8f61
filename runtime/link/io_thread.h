// One permanent thread that runs an Asio event loop and owns the ZeroMQ sockets of the links that
// share it; other threads at most write to one (zmq_socket.h). The control links of a process share
// one IoThread; the bulk socket has one of its own, so that a long payload never delays a
// heartbeat.
//
// Threading: post(), run() and on_this_thread() from any thread. The loop's work must not block.
// Destroy links before their IoThread; the destructor ends the loop, joins the thread and
// terminates the ZeroMQ context, which cannot hang once its sockets are closed with a bounded
// linger. Work that was posted and has not begun by then is dropped.
#pragma once

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}
namespace zmq {
class context_t;
}

namespace tandem::link {

class KeyGate;

class IoThread {
 public:
  explicit IoThread(const char* name = "net");  // at most 15 characters, shown by ps and gdb
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void post(std::function<void()> work);
  // Posts the work and waits for its end. On the loop's own thread it runs in place, since waiting
  // there would never end.
  void run(const std::function<void()>& work);
  bool on_this_thread() const;

  // These are for objects that belong to the loop: their work runs on its thread.
  boost::asio::io_context& loop();
  zmq::context_t& context();
  KeyGate& key_gate();  // who may connect over TCP; on the loop's thread, made at its first use

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::link
