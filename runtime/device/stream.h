// Where an operator runs. On a CPU, work is done when the call returns, by the threads of `pool`.
// On a GPU, `native` is the queue, and work may run after the call has returned.
//
// A stream is a value that borrows the queue and the pool; Queue (queue.h) owns a GPU's.
#pragma once

#include <cstdint>

namespace tandem::device {

class ThreadPool;

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct Stream {
  DeviceKind device = DeviceKind::kCpu;
  void* native = nullptr;      // a GPU's cudaStream_t; null on a CPU
  ThreadPool* pool = nullptr;  // a CPU's threads; null: the caller alone
};

}  // namespace tandem::device
