// The collective over Unix sockets or TCP: rank 0 listens, the others dial it. Not here:
// encryption; over TCP gradients travel as they are (SECURITY.md). A star: rank 0 adds the ranks'
// chunks in rank order and sends the sums back while later chunks are still on their way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/net/endpoint.h"
#include "runtime/net/progress.h"

namespace tandem::runtime {

// CO-5: how rank 0 shows that it lives, and when the other ranks take it for hung. They need the
// same heartbeat_every.
struct GangLiveness {
  Duration heartbeat_every = std::chrono::seconds(1);
  Duration silence_max = std::chrono::seconds(10);  // several heartbeats
  // Of rank 0: its process's progress, called on a thread of the collective. A rank 0 that waits in
  // a call of the gang gets on as well, because that call has its own timeout. None: the counter of
  // such waits is all that is told, in the phase "idle".
  std::function<ProgressReport()> progress = {};
  // Of rank 0, on the thread that makes the calls: it waits in one, which is no hang of this
  // process. Called at least once per heartbeat_every.
  std::function<void()> beat = {};
  // Of the others: how long rank 0 may make no progress in this phase; nothing: for ever. None:
  // rank 0 is never taken for stuck.
  std::function<std::optional<Duration>(std::string_view phase)> stuck_max = {};
};

struct GangSpec {
  int size = 1;
  // What only this gang's ranks know: random, and new for each incarnation. Both sides prove that
  // they know it before anything else is said; a dialler who does not, or who thinks of another
  // size, is refused and does not disturb the others.
  std::string secret;
  AddFloats add = add_floats;
  GangLiveness liveness = {};
};

// Rank 0's side. Listen, tell endpoint() to the other ranks, then accept.
class GangListener {
 public:
  static Result<GangListener> listen(const Endpoint& at = {});

  const Endpoint& endpoint() const { return endpoint_; }

  // Waits until all ranks are there; kTimedOut names those that are missing.
  Result<std::unique_ptr<Collective>> accept(const GangSpec& spec, Duration timeout) &&;

 private:
  GangListener(OwnedFd fd, Endpoint endpoint)
      : fd_(std::move(fd)), endpoint_(std::move(endpoint)) {}

  OwnedFd fd_;
  Endpoint endpoint_;
};

// The side of ranks 1 … size-1. kUnauthorised if either side does not know the other's secret.
Result<std::unique_ptr<Collective>> dial_gang(const Endpoint& to, int rank, const GangSpec& spec,
                                              Duration timeout);

}  // namespace tandem::runtime
