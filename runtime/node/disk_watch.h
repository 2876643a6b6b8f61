// The size of a disk and what is free of it, looked at every so often by a thread of its own: who
// asks never waits for the disk. A look that fails, or does not return, as where a file server is
// away, leaves the figures of the last good one.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/base/result.h"
#include "runtime/node/resources.h"

namespace tandem::node {

class DiskWatch {
 public:
  using Look = std::function<Result<DiskSpace>()>;
  // The first look is made here, and takes as long as the disk does.
  explicit DiskWatch(Look look, std::chrono::milliseconds every = std::chrono::seconds(10));
  // Does not wait for a look under way, after which the thread ends.
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  std::optional<DiskSpace> newest() const;  // any thread; nullopt: no look was good yet

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread's as well
};

}  // namespace tandem::node
