#include "actors/main/own_build.h"

#include "runtime/base/build_id.h"
#include "runtime/device/cuda_module.h"

namespace tandem::app {

link::ProgramBuild own_build() {
  return {.version = "tandem " TANDEM_VERSION,
          .id = own_build_id(),
          .cuda_module = build_id_of(device::cuda_module_path())};
}

}  // namespace tandem::app
