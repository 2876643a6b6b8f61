// The collective over Unix sockets or TCP: rank 0 listens, the others dial it. Over TCP everything
// is encrypted, unless the spec says that the network is trusted (Privacy). A star: rank 0 adds the
// ranks' chunks in rank order and sends the sums back while later chunks are still on their way.
#pragma once

#include <memory>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/gang_spec.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"

namespace tandem::collective {

// Rank 0's side: listen, tell endpoint() to the other ranks, then accept.
class GangListener {
 public:
  // Listens at any free port of the loopback address by default. Errors: kUnreachable.
  static Result<GangListener> listen(const link::Endpoint& at = {},
                                     const link::PortRange& ports = {});

  const link::Endpoint& endpoint() const { return endpoint_; }

  // Waits until all ranks are there; kTimedOut names those that are missing.
  Result<std::unique_ptr<Collective>> accept(const GangSpec& spec, Duration timeout) &&;

 private:
  GangListener(OwnedFd fd, link::Endpoint endpoint)
      : fd_(std::move(fd)), endpoint_(std::move(endpoint)) {}

  OwnedFd fd_;
  link::Endpoint endpoint_;
};

// The side of ranks 1 … size-1. kUnauthorised if either side does not know the other's secret.
Result<std::unique_ptr<Collective>> dial_gang(const link::Endpoint& to, int rank,
                                              const GangSpec& spec, Duration timeout);

}  // namespace tandem::collective
