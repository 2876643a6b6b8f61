// The one function that the module exports; all other symbols are hidden. A binary that asks with
// another `abi` gets null instead of a table with other rows.
#include "kernels/cuda/operators.h"
#include "runtime/device/cuda_functions.h"
#include "runtime/device/cuda_module.h"

extern "C" [[gnu::visibility("default")]] const tandem::device::CudaModule* tandem_cuda_module(
    std::uint32_t abi) {
  using namespace tandem;
  if (abi != device::kCudaModuleAbi) return nullptr;
  static const device::CudaModule kModule = [] {
    device::CudaModule module = device::cuda_functions();
    module.abi = device::kCudaModuleAbi;
    module.backend = &kernels::cuda::table();
    return module;
  }();
  return &kModule;
}
