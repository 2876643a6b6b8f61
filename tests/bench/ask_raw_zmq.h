// The peer of the ask benchmarks: bare ROUTER and DEALER sockets over TCP loopback that carry
// messages of the same sizes between the same processes, with no actors, links or codec around.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "tests/bench/ask_processes.h"

namespace tandem::bench {

// A ROUTER that actors dial; one thread.
class RawCaller {
 public:
  RawCaller();
  std::string endpoint() { return socket_.get(zmq::sockopt::last_endpoint); }
  void wait_for_actors(std::size_t count);
  void call(std::size_t actor);        // one call, waits for its answer
  void run_calls(std::int64_t calls);  // submits all, in turn to each actor, then collects

 private:
  void submit(std::size_t actor);
  void collect();

  zmq::context_t context_;
  zmq::socket_t socket_;
  std::vector<std::string> actors_;  // routing ids
  const std::string request_;
};

int run_raw_echo(std::span<const char* const> words);
int run_raw_caller(std::span<const char* const> words);

class RawRemoteCallers {
 public:
  RawRemoteCallers(Children& children, int callers, int actors);
  void run(std::int64_t calls_each);

 private:
  zmq::context_t context_;
  zmq::socket_t control_;
  std::vector<std::string> callers_;  // routing ids
};

}  // namespace tandem::bench
