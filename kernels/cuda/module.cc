// The one function that the module exports; all other symbols are hidden. A binary that asks with
// another `abi` gets null instead of a table with other rows.
#include "kernels/cuda/operators.h"
#include "runtime/device/cuda_functions.h"

extern "C" [[gnu::visibility("default")]] const tandem::runtime::CudaModule* tandem_cuda_module(
    std::uint32_t abi) {
  using namespace tandem;
  if (abi != runtime::kCudaModuleAbi) return nullptr;
  static const runtime::CudaModule kModule = [] {
    runtime::CudaModule module = runtime::cuda_functions();
    module.abi = runtime::kCudaModuleAbi;
    module.backend = &kernels::cuda::table();
    return module;
  }();
  return &kModule;
}
