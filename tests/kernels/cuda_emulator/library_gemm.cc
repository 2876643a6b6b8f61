// Stands in for kernels/cuda/library_gemm.cc: an emulated GPU has no library, so every product is
// the plain kernel's.
#include "kernels/cuda/gemm.h"

namespace tandem::kernels::cuda {

bool library_gemm(const Stream&, const Gemm&) { return false; }

}  // namespace tandem::kernels::cuda
