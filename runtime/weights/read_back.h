// Copies of one device whose bytes the host hashes: what has arrived on a GPU is read back into
// pinned memory. One checksum of the host, over what the learner published and what the engine has,
// and no second one to be computed by kernels. Internal to runtime/weights; one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"

namespace tandem::runtime {

class ReadBack {
 public:
  // For arenas of that size. Of a GPU the CUDA module must have been found.
  static Result<std::unique_ptr<ReadBack>> make(DeviceKind device, std::size_t arena_bytes);
  ReadBack(DeviceKind device, Buffer pinned) : pinned_(std::move(pinned)), queue_(device) {}

  // Copies from `from` the beginning of `part`, at least a byte, and returns as many bytes for the
  // host to read, as they arrived; they stay until the next call. Done when it returns.
  std::span<const std::byte> copy_part(const std::byte* from, std::span<std::byte> part);

 private:
  const Buffer pinned_;  // of a GPU
  const Queue queue_;
};

}  // namespace tandem::runtime
