// The collective over TCP: rank 0 listens, the others dial it. A star: rank 0 adds the ranks'
// chunks in rank order and sends the sums back while later chunks are still on their way.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"

namespace tandem::runtime {

struct GangSpec {
  int size = 1;
  // What only this gang's ranks know: job, actor, incarnation and a secret of the run. A dialler
  // with another token or size is refused and does not disturb the others.
  std::string token;
  AddFloats add = add_floats;
};

// Rank 0's side. Listen, publish address() to the other ranks, then accept.
class GangListener {
 public:
  static Result<GangListener> listen(const std::string& host = "127.0.0.1");

  const std::string& address() const { return address_; }  // "127.0.0.1:41234", a free port

  // Waits until all ranks are there; kTimedOut names those that are missing.
  Result<std::unique_ptr<Collective>> accept(const GangSpec& spec, Duration timeout) &&;

 private:
  GangListener(OwnedFd fd, std::string address)
      : fd_(std::move(fd)), address_(std::move(address)) {}

  OwnedFd fd_;
  std::string address_;
};

// The side of ranks 1 … size-1. kUnauthorised if rank 0 refuses the token.
Result<std::unique_ptr<Collective>> dial_gang(const std::string& address, int rank,
                                              const GangSpec& spec, Duration timeout);

}  // namespace tandem::runtime
