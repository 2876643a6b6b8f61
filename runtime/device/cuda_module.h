// The CUDA module, libtandem_cuda.so: everything of ours that needs a CUDA library, in one file
// that is opened on demand. A process that computes on a CPU never touches it, and the same binary
// starts on a machine without a driver.
//
// A process uses one GPU, the first that it is shown: whoever spawns a rank picks it by
// CUDA_VISIBLE_DEVICES. Hence a device is a DeviceKind and nothing more.
//
// Not responsible for: buffers and streams as values (memory.h, queue.h), or for what the operators
// mean (kernels/). The functions below abort the process on a CUDA error other than those they
// name, because the context is not to be trusted after one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace tandem::runtime {

// Raised whenever CudaModule or an operator's struct changes: binary and module must be of one
// build.
inline constexpr std::uint32_t kCudaModuleAbi = 5;

struct CudaDevices {
  int count = 0;
  int driver_version = 0;       // 13000 for CUDA 13.0; 0 where no driver is installed
  const char* error = nullptr;  // the CUDA error's name where count is 0
  char name[256] = "";          // of the first one: "NVIDIA H200"
  char bus_id[32] = "";  // of the first one, "0000:65:00.0": tells it from others of its host
};

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

// Names a block of device memory to another process on the same GPU.
inline constexpr std::size_t kIpcHandleBytes = 64;

// What the module offers. Streams are cudaStream_t, events cudaEvent_t.
struct CudaModule {
  std::uint32_t abi = 0;
  const void* backend = nullptr;  // a kernels::Backend
  CudaDevices (*devices)() = nullptr;
  MemoryInfo (*memory_info)() = nullptr;
  void* (*allocate)(std::size_t bytes) = nullptr;  // null: out of memory
  void (*release)(void* memory) = nullptr;
  void* (*allocate_pinned)(std::size_t bytes) =
      nullptr;  // page-locked host memory; null: none left
  void (*release_pinned)(void* memory) = nullptr;
  // Of a block of allocate(), to be opened by other processes than the one that has it, once by
  // each. Both give null where they succeed, else the CUDA error's name; what can be opened no more
  // (its owner has gone) or not from here (another GPU) is no failure of this process.
  const char* (*ipc_export)(void* memory, void* handle) = nullptr;
  const char* (*ipc_open)(const void* handle, void** memory) = nullptr;
  void (*ipc_close)(void* memory) = nullptr;
  void* (*create_stream)() = nullptr;
  void (*destroy_stream)(void* stream) = nullptr;
  void (*synchronize)(void* stream) = nullptr;
  bool (*stream_idle)(void* stream) = nullptr;  // whether synchronize would return at once
  void* (*create_event)() = nullptr;
  void (*destroy_event)(void* event) = nullptr;
  void (*record_event)(void* event, void* stream) = nullptr;
  void (*wait_for_event)(void* event) = nullptr;  // the calling thread does
  bool (*event_done)(void* event) = nullptr;      // whether wait_for_event would return at once
  // Work that the stream is given from now on waits; the calling thread does not.
  void (*stream_waits_for)(void* stream, void* event) = nullptr;
  // In the stream's order, either side in either memory. Pageable host memory may be read before
  // the call returns; pinned memory must stay as it is until the stream has come past.
  void (*copy)(void* stream, void* to, const void* from, std::size_t bytes) = nullptr;
  void (*zero)(void* stream, void* to, std::size_t bytes) = nullptr;
  // What the calling thread queues on the stream between the first two is recorded, not run
  // (graph.h). The second gives a cudaGraphExec_t.
  void (*begin_capture)(void* stream) = nullptr;
  void* (*end_capture)(void* stream) = nullptr;
  void (*launch_graph)(void* graph, void* stream) = nullptr;
  void (*destroy_graph)(void* graph) = nullptr;
};

// The module's one exported function, of this name; null where it was built for another abi.
inline constexpr const char* kCudaModuleEntry = "tandem_cuda_module";
using CudaModuleEntry = const CudaModule*(std::uint32_t abi);

// Opens the module at `path` and sees to it that it has a device to run on. Three errors are kept
// apart, each with what was found: no module (or one that does not load), no driver, no device.
Result<const CudaModule*> open_cuda_module(const std::string& path);

// Where this process looks for it: $TANDEM_CUDA_MODULE, else beside the executable or in ../lib.
std::string cuda_module_path();

// The module of this process, opened by the first call and kept until the process ends.
const Result<const CudaModule*>& cuda_module();

}  // namespace tandem::runtime
