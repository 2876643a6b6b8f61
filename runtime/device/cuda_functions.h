// Device memory, copies and streams: the part of CudaModule that is not kernels. For the CUDA
// module alone; everybody else goes through memory.h and queue.h.
#pragma once

#include "runtime/device/cuda_module.h"

namespace tandem::runtime {

// All functions of CudaModule; abi and backend are the caller's to fill in.
CudaModule cuda_functions();

}  // namespace tandem::runtime
