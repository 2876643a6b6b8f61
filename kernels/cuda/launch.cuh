// How a kernel is started: by a plain function call, so that the same source is compiled by nvcc
// for a GPU and by g++ for the emulator that the tests use (tests/kernels/cuda_emulator).
//
//   launch(stream, {.grid = blocks, .block = 256}, kernel<float>, x, y, n);
//
// The kernel is queued on the stream and runs later. Its arguments are copied by value, so pointers
// in them must be of device memory that outlasts the work. A launch that fails ends the process.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "runtime/device/cuda_functions.h"
#include "runtime/device/stream.h"

namespace tandem::kernels::cuda {

// Dynamic shared memory that a kernel may have without asking for more. CUDA gives 48 KiB, static
// shared memory included, for which 1 KiB is left.
inline constexpr std::size_t kSharedBytesDefault = 47 << 10;

struct Launch {
  dim3 grid;                     // blocks; a zero in it: there is nothing to do
  dim3 block;                    // threads of a block
  std::size_t shared_bytes = 0;  // dynamic shared memory of a block
};

// The most dynamic shared memory that a block may have: the GPU's limit for a block, less 1 KiB for
// static shared memory, to which ptxas adds 1 KiB of the system's for some GPUs. A process uses one
// GPU, so the limit is read once.
inline int shared_bytes_max() {
  static const int bytes = [] {
    int of_block = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    return of_block - (2 << 10);
  }();
  return bytes;
}

// Multiprocessors of the process's GPU, read once.
inline int multiprocessors() {
  static const int count = [] {
    int of_device = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&of_device, cudaDevAttrMultiProcessorCount, 0));
    return of_device;
  }();
  return count;
}

// Queues the kernel; nothing where the grid is empty, which CUDA would take for an error.
template <class... Parameters, class... Arguments>
void launch(const device::Stream& stream, const Launch& shape, void (*kernel)(Parameters...),
            Arguments... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  if (shape.shared_bytes > kSharedBytesDefault) {
    // The allowance belongs to the kernel in this process and not to the launch. It is always set
    // to the same size, so that a thread that needs less does not take it from one that needs more.
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

// How many blocks of `per_block` items cover `count` items.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace tandem::kernels::cuda
