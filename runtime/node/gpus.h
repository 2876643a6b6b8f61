// The GPUs of this machine, read through NVML, the management library of NVIDIA's driver. It is
// opened on demand and closed again: no library of NVIDIA's is needed to build or to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::runtime {

struct Gpu {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-6f2a…": what CUDA_VISIBLE_DEVICES takes, whatever the order of the rest
  std::int64_t memory_bytes = 0;
  std::int64_t memory_free_bytes = 0;  // at the moment of reading
};
TANDEM_WIRE(Gpu, name, uuid, memory_bytes, memory_free_bytes)

// Those that CUDA_VISIBLE_DEVICES leaves to this process, in its order (numbers count in the order
// of the PCI bus). None is an error that says what was found: no driver, a driver that does not
// answer, no device, or none visible. `library` is a test's.
Result<std::vector<Gpu>> read_gpus(const std::string& library = "libnvidia-ml.so.1");

}  // namespace tandem::runtime
