// How a kernel is started: a plain function call, so that the same source is compiled by nvcc for a
// GPU and by g++ for the emulator that the tests use.
//
//   launch(stream, {.grid = blocks, .block = 256}, kernel<float>, x, y, n);
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "runtime/device/cuda_check.h"
#include "runtime/device/stream.h"

namespace tandem::kernels::cuda {

// What a kernel gets without asking is 48 KiB, its static shared memory included.
inline constexpr std::size_t kSharedBytesDefault = 47 << 10;

struct Launch {
  dim3 grid;  // a zero in it: there is nothing to do
  dim3 block;
  std::size_t shared_bytes = 0;  // dynamic shared memory
};

// The most dynamic shared memory of a block: what the GPU has for one, less 1 KiB of static memory,
// to which ptxas adds 1 KiB of the system's for some GPUs.
inline int shared_bytes_max() {
  static const int bytes = [] {
    int of_block = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    return of_block - (2 << 10);
  }();
  return bytes;
}

inline int multiprocessors() {
  static const int count = [] {
    int of_device = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&of_device, cudaDevAttrMultiProcessorCount, 0));
    return of_device;
  }();
  return count;
}

template <class... Parameters, class... Arguments>
void launch(const runtime::Stream& stream, const Launch& shape, void (*kernel)(Parameters...),
            Arguments... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  if (shape.shared_bytes > kSharedBytesDefault) {
    // The allowance is the process's, not the launch's: always the same one, so that threads that
    // launch the kernel with more and with less do not take it from each other.
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    shared_bytes_max()));
  }
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream.native);
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

// Blocks of `per_block` items that cover `count`.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace tandem::kernels::cuda
