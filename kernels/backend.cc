#include "kernels/backend.h"

#include "runtime/device/cuda_module.h"

namespace tandem::kernels {

const Backend& backend(runtime::DeviceKind device) {
  switch (device) {
    case runtime::DeviceKind::kCpu:
      return cpu_backend();
    case runtime::DeviceKind::kCuda:
      // The module's header knows no operators, so the table crosses it as a void pointer. Both
      // sides were built from one backend.h: opening the module has compared kCudaModuleAbi.
      return *static_cast<const Backend*>(runtime::cuda_module().value()->backend);
  }
  CHECK(false);
}

}  // namespace tandem::kernels
