// The processes of the ask benchmarks, all this executable: actors that answer, callers that ask.
// A caller listens; each actor dials every caller, so callers and actors form a full mesh. The same
// shape twice: with the runtime's refs and links, and with bare ZeroMQ sockets (raw_zmq).
//
// The measurement is that of Ray's microbenchmark: an empty method that returns 2 bytes; `async`
// submits a batch and then collects it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "tests/bench/children.h"
#include "tests/bench/link_peers.h"

namespace tandem::bench {

inline constexpr const char* kAnswer = "ok";

struct SmallValue {
  using Reply = std::string;
};
TANDEM_WIRE_EMPTY(SmallValue)

struct RunCalls {  // submit so many calls, in turn to each actor, and collect the answers
  using Reply = void;
  std::int64_t calls = 0;
};
TANDEM_WIRE(RunCalls, calls)

using EchoInbox = std::variant<actor::Ask<SmallValue>>;
using CallerInbox = std::variant<actor::Ask<RunCalls>>;

// The bytes of one call's two frames, as the link's user hands them over.
struct FrameSizes {
  std::size_t request = 0;
  std::size_t reply = 0;
};
FrameSizes frame_sizes();

// A caller: a server that actors dial, and an actor of its own that asks them.
class Caller {
 public:
  Caller(std::size_t actors_expected, Transport transport);
  ~Caller();
  std::string address() const;                  // for dial_of()
  std::vector<actor::Ref<EchoInbox>> actors();  // waits until all have come
  const actor::Ref<CallerInbox>& driver() const { return driver_; }

 private:
  const std::size_t actors_expected_;
  ServerAddress address_;
  link::Directory directory_;
  link::IoThread io_{"link"};
  actor::ThreadedExecutor executor_{1, 1};
  actor::System system_{executor_, {}};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<actor::Ref<EchoInbox>> actors_;  // guarded by mutex_
  actor::Ref<CallerInbox> driver_;
  std::unique_ptr<link::LinkServer> link_;
};

// The roles; `words` are argv behind the role's name.
int run_echo(std::span<const char* const> words);
int run_caller(std::span<const char* const> words);

// Callers in processes of their own, told what to do by this one.
class RemoteCallers {
 public:
  RemoteCallers(Children& children, int callers, int actors, Transport transport);
  ~RemoteCallers();
  void run(std::int64_t calls_each);

 private:
  ServerAddress address_{Transport::kUnix};
  link::Directory directory_;
  link::IoThread io_{"control"};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> endpoints_;            // guarded by mutex_, as is:
  std::vector<actor::Ref<CallerInbox>> callers_;  // until all have come
  std::unique_ptr<link::LinkServer> link_;
};

}  // namespace tandem::bench
