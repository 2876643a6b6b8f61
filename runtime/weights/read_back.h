// Copies on one device of which the host computes the checksum: bytes that arrived on a GPU are
// read back into pinned memory. So there is one implementation of the checksum, the host's, for the
// bytes that the learner published and those that the engine has; none has to be written for the
// GPU. Internal to runtime/weights; used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"

namespace tandem::weights {

class ReadBack {
 public:
  // Reads back arenas of `arena_bytes`. On a GPU the CUDA module must have been found; kOutOfMemory
  // where the host can pin no more memory.
  static Result<std::unique_ptr<ReadBack>> make(device::DeviceKind device, std::size_t arena_bytes);
  ReadBack(device::DeviceKind device, device::Buffer pinned)
      : pinned_(std::move(pinned)), queue_(device) {}

  // Copies the first bytes of `from` to the beginning of `part`, at least one, and returns them for
  // the host to read, as they arrived: the result's size is their number. The returned bytes stay
  // valid until the next call. The copy is done when the call returns.
  std::span<const std::byte> copy_part(const std::byte* from, std::span<std::byte> part);

 private:
  const device::Buffer pinned_;  // bytes read back from a GPU; empty on a CPU
  const device::Queue queue_;
};

}  // namespace tandem::weights
