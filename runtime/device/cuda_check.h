// CUDA_CHECK: for sources of the CUDA module. An error of CUDA's ends the process with the
// expression, the place and the error's name; the supervisor starts it anew.
#pragma once

#include <cuda_runtime.h>

#include <source_location>

namespace tandem::runtime {

[[noreturn]] void cuda_failed(const char* expression, cudaError_t error,
                              const std::source_location& where);

inline void cuda_check(cudaError_t error, const char* expression,
                       const std::source_location& where = std::source_location::current()) {
  if (error != cudaSuccess) cuda_failed(expression, error, where);
}

}  // namespace tandem::runtime

#define CUDA_CHECK(expression) ::tandem::runtime::cuda_check((expression), #expression)
