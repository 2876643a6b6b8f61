// Where an operator runs. On a CPU work is done when the call returns, by the threads of `pool`
// (null: the caller alone). On a GPU `native` is the queue and work may run after return.
#pragma once

#include <cstdint>

namespace tandem::runtime {

class ThreadPool;

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct Stream {
  DeviceKind device = DeviceKind::kCpu;
  void* native = nullptr;
  ThreadPool* pool = nullptr;
};

}  // namespace tandem::runtime
