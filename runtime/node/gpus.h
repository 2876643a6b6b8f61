// The GPUs of this machine, read through NVML, the management library of NVIDIA's driver. It is
// opened on demand and closed again: no library of NVIDIA's is needed to build or to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::runtime {

// How near two GPUs are, nearest first, as `nvidia-smi topo -m` names it.
enum class GpuLink : std::uint8_t {
  kSelf,        // "X"
  kNvlink,      // "NV"
  kBoard,       // "PSB": on one board
  kSwitch,      // "PIX": through at most one PCIe bridge
  kSwitches,    // "PXB": through several
  kHostBridge,  // "PHB": through the CPU's PCIe host bridge
  kNumaNode,    // "NODE": between host bridges of one NUMA node
  kSystem,      // "SYS": between NUMA nodes
  kUnknown,     // "unknown": this driver does not say
};
TANDEM_WIRE_ENUM(GpuLink, kSelf, kNvlink, kBoard, kSwitch, kSwitches, kHostBridge, kNumaNode,
                 kSystem, kUnknown)
const char* name(GpuLink link);

struct Gpu {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-6f2a…": what CUDA_VISIBLE_DEVICES takes, whatever the order of the rest
  std::int64_t memory_bytes = 0;
  std::int64_t memory_free_bytes = 0;  // at the moment of reading
  // The CPUs and the NUMA nodes nearest to it, "0-15,32-47"; empty where the driver does not say.
  std::string cpu_affinity = {};
  std::string numa_affinity = {};
  std::vector<GpuLink> links = {};  // to each of its listing, itself included
};
TANDEM_WIRE(Gpu, name, uuid, memory_bytes, memory_free_bytes, cpu_affinity, numa_affinity, links)

// What NVML lists and CUDA_VISIBLE_DEVICES leaves to this process, in its order (numbers count as
// nvidia-smi does, lost devices included). At least one of either kind.
struct GpuListing {
  std::vector<Gpu> usable;
  std::vector<std::string> unusable;  // "GPU 1 (NVIDIA H200, GPU-6f2a…): GPU is lost (nvml…)"
};

// No GPU at all is kNotFound and says what was found: no driver, a driver that does not answer, no
// device, or none visible. `library` is a test's.
Result<GpuListing> read_gpus(const std::string& library = "libnvidia-ml.so.1");

// Why a listing has no usable GPU, with the names of the others; empty where it has one.
std::string absence_of(const GpuListing& gpus);

}  // namespace tandem::runtime
