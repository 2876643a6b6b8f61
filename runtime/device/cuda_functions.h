// For the sources of the CUDA module alone: CUDA_CHECK, and the part of CudaModule that is not
// kernels. All other code uses memory.h, queue.h and graph.h.
#pragma once

#include <cuda_runtime.h>

#include <source_location>

namespace tandem::device {

struct CudaModule;  // cuda_module.h

// Device memory, copies, streams, events and graphs: all functions of CudaModule. The caller fills
// in `abi` and `backend`.
CudaModule cuda_functions();

[[noreturn]] void cuda_failed(const char* expression, cudaError_t error,
                              const std::source_location& where);

inline void cuda_check(cudaError_t error, const char* expression,
                       const std::source_location& where = std::source_location::current()) {
  if (error != cudaSuccess) cuda_failed(expression, error, where);
}

}  // namespace tandem::device

// A CUDA error ends the process with the expression, the place and the error's name on stderr. The
// process is not trusted to go on, because its CUDA context may be damaged; the supervisor decides
// whether to start another.
#define CUDA_CHECK(expression) ::tandem::device::cuda_check((expression), #expression)
