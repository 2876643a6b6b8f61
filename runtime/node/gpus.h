// The GPUs of this machine, read through NVML, the management library of NVIDIA's driver. The
// library is opened for each reading and closed again, so that no library of NVIDIA's is needed to
// build or to run Tandem. No CUDA context is made. Which GPU an actor gets is decided by the
// controller.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::node {

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
// The word in quotes above.
const char* name(GpuLink link);

struct Gpu {
  std::string name;  // "NVIDIA H200"
  // "GPU-6f2a…", which CUDA_VISIBLE_DEVICES takes as well as a number; unlike a number it stays the
  // same whatever other devices there are.
  std::string uuid;
  std::int64_t memory_bytes = 0;
  std::int64_t memory_free_bytes = 0;  // at the moment of reading
  // The CPUs and the NUMA nodes nearest to the GPU, "0-15,32-47"; empty where the driver does not
  // say.
  std::string cpu_affinity = {};
  std::string numa_affinity = {};
  // The links to each usable GPU of the same listing, in the listing's order, including the link to
  // itself.
  std::vector<GpuLink> links = {};
};
TANDEM_WIRE(Gpu, name, uuid, memory_bytes, memory_free_bytes, cpu_affinity, numa_affinity, links)

// The GPUs that NVML lists and CUDA_VISIBLE_DEVICES leaves to this process, in the order of that
// variable. Its numbers count as those of nvidia-smi do, lost devices included. Never empty: it has
// at least one GPU of either kind.
struct GpuListing {
  std::vector<Gpu> usable;
  std::vector<std::string> unusable;  // "GPU 1 (NVIDIA H200, GPU-6f2a…): GPU is lost (nvml…)"
};

// Reads the listing. Without any GPU the error is kNotFound and says why: no driver, a driver that
// does not answer, no device, or no device that is visible. `library` is for tests.
Result<GpuListing> read_gpus(const std::string& library = "libnvidia-ml.so.1");

// Why a listing has no usable GPU, with the label and the trouble of each GPU; empty where it has
// one.
std::string absence_of(const GpuListing& gpus);

}  // namespace tandem::node
