#include "kernels/backend.h"

namespace tandem::kernels {

const Backend& backend(runtime::DeviceKind device) {
  CHECK(device == runtime::DeviceKind::kCpu);
  return cpu_backend();
}

}  // namespace tandem::kernels
