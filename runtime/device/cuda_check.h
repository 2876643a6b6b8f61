// CUDA_CHECK, for sources of the CUDA module: a CUDA error ends the process with the expression,
// the place and the error's name on stderr. The process is not trusted to go on, because its CUDA
// context may be damaged; the supervisor decides whether to start another.
#pragma once

#include <cuda_runtime.h>

#include <source_location>

namespace tandem::device {

[[noreturn]] void cuda_failed(const char* expression, cudaError_t error,
                              const std::source_location& where);

inline void cuda_check(cudaError_t error, const char* expression,
                       const std::source_location& where = std::source_location::current()) {
  if (error != cudaSuccess) cuda_failed(expression, error, where);
}

}  // namespace tandem::device

#define CUDA_CHECK(expression) ::tandem::device::cuda_check((expression), #expression)
