#include "tests/bench/ask_raw_zmq.h"

#include "runtime/base/check.h"

namespace tandem::bench {
namespace {

constexpr const char* kAnyPort = "tcp://127.0.0.1:*";
constexpr int kQueueUnbounded = 0;
constexpr int kPatienceMs = static_cast<int>(kPatience / std::chrono::milliseconds(1));

zmq::socket_t make_socket(zmq::context_t& context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::sndhwm, kQueueUnbounded);
  socket.set(zmq::sockopt::rcvhwm, kQueueUnbounded);
  socket.set(zmq::sockopt::rcvtimeo, kPatienceMs);
  socket.set(zmq::sockopt::linger, 0);
  return socket;
}

std::string receive(zmq::socket_t& socket) {
  zmq::message_t message;
  CHECK(socket.recv(message).has_value());
  return message.to_string();
}

void send(zmq::socket_t& socket, const std::string& bytes) {
  socket.send(zmq::buffer(bytes), zmq::send_flags::none);
}

void send_to(zmq::socket_t& router, const std::string& to, const std::string& bytes) {
  router.send(zmq::buffer(to), zmq::send_flags::sndmore);
  send(router, bytes);
}

}  // namespace

RawCaller::RawCaller()
    : socket_(make_socket(context_, zmq::socket_type::router)),
      request_(frame_sizes().request, 'q') {
  socket_.bind(kAnyPort);
}

void RawCaller::wait_for_actors(std::size_t count) {
  while (actors_.size() < count) {
    actors_.push_back(receive(socket_));
    receive(socket_);  // its greeting
  }
}

void RawCaller::submit(std::size_t actor) { send_to(socket_, actors_[actor], request_); }

void RawCaller::collect() {
  zmq::message_t message;
  CHECK(socket_.recv(message).has_value() && socket_.recv(message).has_value());
}

void RawCaller::call(std::size_t actor) {
  submit(actor);
  collect();
}

void RawCaller::run_calls(std::int64_t calls) {
  for (std::int64_t i = 0; i < calls; ++i) submit(static_cast<std::size_t>(i) % actors_.size());
  for (std::int64_t i = 0; i < calls; ++i) collect();
}

// PARENT NAME ENDPOINT…
int run_raw_echo(std::span<const char* const> words) {
  die_with_parent(words[0]);
  zmq::context_t context;
  const std::string reply(frame_sizes().reply, 'r');
  std::vector<zmq::socket_t> sockets;
  std::vector<zmq::pollitem_t> items;
  for (const char* endpoint : words.subspan(2)) {
    sockets.push_back(make_socket(context, zmq::socket_type::dealer));
    sockets.back().connect(endpoint);
    send(sockets.back(), words[1]);
    items.push_back({sockets.back().handle(), 0, ZMQ_POLLIN, 0});
  }
  zmq::message_t request;
  for (;;) {  // until the parent ends it
    zmq::poll(items, std::chrono::milliseconds(-1));
    for (std::size_t i = 0; i < items.size(); ++i)
      while (items[i].revents && sockets[i].recv(request, zmq::recv_flags::dontwait))
        send(sockets[i], reply);
  }
}

// PARENT NAME CONTROL ACTORS
int run_raw_caller(std::span<const char* const> words) {
  die_with_parent(words[0]);
  RawCaller caller;
  zmq::context_t context;
  zmq::socket_t control = make_socket(context, zmq::socket_type::dealer);
  control.set(zmq::sockopt::rcvtimeo, -1);
  control.connect(words[2]);
  send(control, caller.endpoint());
  caller.wait_for_actors(std::stoul(words[3]));
  for (;;) {  // until the parent ends it
    caller.run_calls(std::stol(receive(control)));
    send(control, kAnswer);
  }
}

RawRemoteCallers::RawRemoteCallers(Children& children, int callers, int actors)
    : control_(make_socket(context_, zmq::socket_type::router)) {
  control_.bind(kAnyPort);
  children.spawn("raw_caller", callers,
                 {control_.get(zmq::sockopt::last_endpoint), std::to_string(actors)});
  std::vector<std::string> endpoints;
  for (int i = 0; i < callers; ++i) {
    callers_.push_back(receive(control_));
    endpoints.push_back(receive(control_));
  }
  children.spawn("raw_echo", actors, endpoints);
  run(actors);  // answered once all actors have come
}

void RawRemoteCallers::run(std::int64_t calls_each) {
  for (const std::string& caller : callers_) send_to(control_, caller, std::to_string(calls_each));
  for (std::size_t i = 0; i < callers_.size(); ++i) {
    receive(control_);
    CHECK(receive(control_) == kAnswer);
  }
}

}  // namespace tandem::bench
