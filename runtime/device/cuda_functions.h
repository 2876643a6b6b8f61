// Device memory, copies, streams, events and graphs: the part of CudaModule that is not kernels.
// Only the CUDA module links this file; all other code uses memory.h, queue.h and graph.h.
#pragma once

#include "runtime/device/cuda_module.h"

namespace tandem::device {

// All functions of CudaModule. The caller fills in `abi` and `backend`.
CudaModule cuda_functions();

}  // namespace tandem::device
