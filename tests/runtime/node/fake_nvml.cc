// A libnvidia-ml.so.1 for machines without a GPU: as many devices of 80 GiB as $FAKE_GPUS says,
// else as the CUDA emulator has; "broken" is a driver that does not answer. $FAKE_GPUS_GONE, _LOST,
// _DEAF and _MIG name some of them, "1,2": gone ones have no handle, lost ones no name, deaf ones
// do not tell their memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

const char* setting() {
  const char* gpus = std::getenv("FAKE_GPUS");
  if (gpus == nullptr) gpus = std::getenv("TANDEM_EMULATED_GPUS");
  return gpus == nullptr ? "0" : gpus;
}

constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kDriverNotLoaded = 9;
constexpr int kGpuIsLost = 15;

int index_of(void* device) { return static_cast<int>(reinterpret_cast<std::size_t>(device)) - 1; }

bool named(const char* variable, int index) {
  const char* list = std::getenv(variable);
  for (; list != nullptr && *list != 0; ++list)
    if (*list - '0' == index) return true;
  return false;
}

int write(const char* format, void* device, char* text, unsigned length) {
  if (named("FAKE_GPUS_LOST", index_of(device))) return kGpuIsLost;
  std::snprintf(text, length, format, index_of(device));
  return 0;
}

}  // namespace

extern "C" {

struct Memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return std::strcmp(setting(), "broken") == 0 ? kDriverNotLoaded : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int error) {
  if (error == kGpuIsLost) return "GPU is lost";
  return error == kDriverNotLoaded ? "Driver Not Loaded" : "Invalid Argument";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(std::atoi(setting()));
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (static_cast<int>(index) >= std::atoi(setting())) return kInvalidArgument;
  if (named("FAKE_GPUS_GONE", static_cast<int>(index))) return kGpuIsLost;
  *device = reinterpret_cast<void*>(std::size_t{index} + 1);
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  return write("Fake GPU %d", device, text, length);
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  return write("GPU-%d0000000-fake", device, text, length);
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (named("FAKE_GPUS_LOST", index_of(device)) || named("FAKE_GPUS_DEAF", index_of(device)))
    return kGpuIsLost;
  *memory = {.total = 80ull << 30, .free = 79ull << 30, .used = 1ull << 30};
  return 0;
}
#ifndef TANDEM_FAKE_NVML_OLD
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (index_of(device) == 0) return kNotSupported;  // a GPU that knows no such mode
  *current = *pending = named("FAKE_GPUS_MIG", index_of(device)) ? 1 : 0;
  return 0;
}
// Neighbours of an even and an odd number share a switch, and the first pair an NVLink; every GPU
// has four CPUs, which begin at the boundary of a word less one, and each pair a NUMA node.
int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, int* level) {
  *level = index_of(one) / 2 == index_of(other) / 2 ? 10 : 50;
  return 0;
}
int nvmlDeviceGetP2PStatus(void* one, void* other, int capability, int* status) {
  if (capability != 2) return kInvalidArgument;
  *status = index_of(one) < 2 && index_of(other) < 2 ? 0 : 1;
  return 0;
}
int nvmlDeviceGetCpuAffinity(void* device, unsigned words, unsigned long* cpus) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    const int at = 62 + 4 * index_of(device) + cpu;
    if (at / 64 < static_cast<int>(words)) cpus[at / 64] |= 1ul << (at % 64);
  }
  if (words > 2) cpus[2] |= 1;
  return 0;
}
int nvmlDeviceGetMemoryAffinity(void* device, unsigned, unsigned long* nodes, unsigned scope) {
  if (scope != 0) return kInvalidArgument;
  nodes[0] = 1ul << (index_of(device) / 2);
  return 0;
}
#endif
}
