#include "kernels/backend.h"

#include "runtime/device/cuda_module.h"

namespace tandem::kernels {

const Backend& backend(device::DeviceKind device) {
  switch (device) {
    case device::DeviceKind::kCpu:
      return cpu_backend();
    case device::DeviceKind::kCuda:
      // The module's header knows no operators, so the table crosses it as a void pointer. Both
      // sides were built from one backend.h: opening the module has compared kCudaModuleAbi.
      return *static_cast<const Backend*>(device::cuda_module().value()->backend);
  }
  CHECK(false);
}

}  // namespace tandem::kernels
