// The GPU's arithmetic, one function per row of Backend. kernels/ops/<op>.h has the contract of
// each function, and kernels/ops/<op>.cc has checked all that the host can check of the operands.
//
// A function queues its work on the stream and returns. Operands and lists in the device's memory
// are read when the work runs; the structs, and the views in them, only until the function returns.
// No function waits for the GPU, except for the first product of a shape (gemm.h). A CUDA error
// ends the process.
#pragma once

#include "kernels/backend.h"

namespace tandem::kernels::cuda {

#define TANDEM_ROW(function, Operands) void function(const Stream& stream, const Operands& op);
TANDEM_OPERATORS(TANDEM_ROW)
#undef TANDEM_ROW

// The functions above as a table, which module.cc hands out.
const Backend& table();

}  // namespace tandem::kernels::cuda
