// What CUDA C++ says in a way that no C++ compiler understands. The emulator has a header of this
// name with the same functions (tests/kernels/cuda_emulator/include), and finds its own first; all
// other kernel sources are plain enough for both.
#pragma once

#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

// The block's dynamic shared memory (Launch::shared_bytes of it), aligned to 16 bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 tandem_dynamic_shared[];
  return reinterpret_cast<T*>(tandem_dynamic_shared);
}

}  // namespace tandem::kernels::cuda
