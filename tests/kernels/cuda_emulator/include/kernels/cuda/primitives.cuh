// The emulator's form of kernels/cuda/primitives.cuh: the same functions in plain C++.
#pragma once

#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulator::dynamic_shared());
}

}  // namespace tandem::kernels::cuda
