// The emulator's devices, and launches of kernels on them, by the names and rules of the CUDA
// runtime. Devices differ by their numbers alone, which their names in CUDA_VISIBLE_DEVICES, their
// bus ids and their memory follow from.
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "tests/kernels/cuda_emulator/driver.h"

namespace tandem::emulator {
namespace {

constexpr std::size_t kSharedBytesDefault = 48 << 10, kSharedBytesMax = 227 << 10;
constexpr int kMultiprocessors = 32;
constexpr int kDevicesMax = 8;
constexpr unsigned kThreadsMax = 1024, kGridMax = 65535;

// The same as in the fake management library of tests/runtime/node.
std::string uuid(int number) { return "GPU-" + std::to_string(number) + "0000000-fake"; }

// The numbers of the devices that this process sees, as CUDA reads CUDA_VISIBLE_DEVICES: words
// behind one that names no device, or names a device again, are not read.
std::vector<int> visible() {
  const char* given = std::getenv("TANDEM_EMULATED_GPUS");
  const int all = given == nullptr ? 1 : std::clamp(std::atoi(given), 0, kDevicesMax);
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<int> seen;
  for (int i = 0; i < all && variable == nullptr; ++i) seen.push_back(i);
  std::istringstream words(variable == nullptr ? "" : variable);
  for (std::string word; std::getline(words, word, ',');) {
    word.erase(0, std::min(word.find_first_not_of(' '), word.size()));
    int number = 0;
    const auto named = [&](int i) {
      return word == std::to_string(i) || (word.starts_with("GPU-") && uuid(i).starts_with(word));
    };
    while (number < all && !named(number)) ++number;
    if (number == all || std::ranges::find(seen, number) != seen.end()) break;
    seen.push_back(number);
  }
  return seen;
}

// The key under which a thread keeps its current device. A thread-local would not do: those are
// shared memory.
pthread_key_t device_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    if (::pthread_key_create(&made, nullptr) != 0) broken("no key for the current device");
    return made;
  }();
  return key;
}

bool valid(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const auto allowed = driver().shared_allowed.find(kernel);
  const std::size_t shared =
      allowed == driver().shared_allowed.end() ? kSharedBytesDefault : allowed->second;
  return grid.x >= 1 && grid.x <= 0x7fffffffu && grid.y >= 1 && grid.y <= kGridMax && grid.z >= 1 &&
         grid.z <= kGridMax && block.x >= 1 && block.y >= 1 && block.z >= 1 && block.z <= 64 &&
         std::uint64_t{block.x} * block.y * block.z <= kThreadsMax &&
         config.dynamicSmemBytes <= shared;
}

}  // namespace

int current_device() {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(::pthread_getspecific(device_key())));
}

cudaError_t allow_shared(const void* kernel, int bytes) {
  const Lock lock(driver().mutex);
  if (bytes < 0 || static_cast<std::size_t>(bytes) > kSharedBytesMax) return cudaErrorInvalidValue;
  std::size_t& allowed = driver().shared_allowed[kernel];
  if (static_cast<std::size_t>(bytes) < allowed) {
    broken("a kernel's shared memory was cut from %zu to %d bytes, which is so for every thread",
           allowed, bytes);
  }
  allowed = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

cudaError_t enqueue(const cudaLaunchConfig_t& config, const void* kernel,
                    std::function<void()> thread) {
  Lock lock(driver().mutex);
  if (!valid(config, kernel)) return cudaErrorInvalidConfiguration;
  if (find(config.stream)->device != current_device()) return cudaErrorInvalidResourceHandle;
  queue(lock, config.stream, {.work = [config, thread = std::move(thread)] {
          blockDim = config.blockDim;
          gridDim = config.gridDim;
          run_grid(config.dynamicSmemBytes, thread);
        }});
  return cudaSuccess;
}

}  // namespace tandem::emulator

using namespace tandem::emulator;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureWrongThread:
      return "cudaErrorStreamCaptureWrongThread";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t) { return "as emulated"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

// There is no driver where a test says so.
cudaError_t cudaDriverGetVersion(int* version) {
  *version = std::getenv("TANDEM_EMULATED_WITHOUT_DRIVER") == nullptr ? 13000 : 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(visible().size());
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const std::vector<int> seen = visible();
  if (seen.empty()) return cudaErrorNoDevice;
  if (device < 0 || device >= static_cast<int>(seen.size())) return cudaErrorInvalidDevice;
  ::pthread_setspecific(device_key(), reinterpret_cast<void*>(std::intptr_t{device}));
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const int count = static_cast<int>(visible().size());
  if (std::min(device, peer) < 0 || std::max(device, peer) >= count) return cudaErrorInvalidDevice;
  *can = device == peer ? 0 : 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  const std::vector<int> seen = visible();
  if (device < 0 || device >= static_cast<int>(seen.size())) return cudaErrorInvalidDevice;
  const int number = seen[static_cast<std::size_t>(device)];
  const int length =
      std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02X:00.0", number + 1);
  return length < bytes ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const std::vector<int> seen = visible();
  if (device < 0 || device >= static_cast<int>(seen.size())) return cudaErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated");
  properties->uuid.bytes[0] = static_cast<char>(seen[static_cast<std::size_t>(device)] << 4);
  properties->multiProcessorCount = kMultiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(kSharedBytesMax);
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}
