// The CUDA module, libtandem_cuda.so: all code of Tandem that needs a CUDA library, in one file
// that is opened on demand. A process that computes on a CPU never opens it, and the same binary
// starts on a machine without a driver.
//
// A process uses one GPU, the first that CUDA shows to it: whoever spawns a rank picks the GPU by
// CUDA_VISIBLE_DEVICES. Hence a DeviceKind names a device completely.
//
// Not responsible for buffers and streams as values (memory.h, queue.h), or for the meaning of
// operators (kernels/). The functions below abort the process on a CUDA error, except on the errors
// that they name, because a CUDA context is not to be trusted after an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace tandem::device {

// Raised whenever CudaModule or an operator's struct changes: binary and module must be of one
// build.
inline constexpr std::uint32_t kCudaModuleAbi = 6;

struct CudaDevices {
  int count = 0;
  int driver_version = 0;       // 13000 for CUDA 13.0; 0 where no driver is installed
  const char* error = nullptr;  // the CUDA error's name where count is 0
  char name[256] = "";          // the first device's: "NVIDIA H200"
  char bus_id[32] = "";         // the first device's, unique on the host: "0000:65:00.0"
};

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

// Bytes of a handle that names a block of device memory to another process on the same GPU.
inline constexpr std::size_t kIpcHandleBytes = 64;

// The functions of the module, as a table of pointers. Streams are cudaStream_t, events are
// cudaEvent_t, memory is a CUDA address. Any thread may call.
struct CudaModule {
  std::uint32_t abi = 0;
  const void* backend = nullptr;  // a kernels::Backend
  CudaDevices (*devices)() = nullptr;
  MemoryInfo (*memory_info)() = nullptr;
  void* (*allocate)(std::size_t bytes) = nullptr;  // null: out of memory
  void (*release)(void* memory) = nullptr;
  // Page-locked host memory; null: none is left.
  void* (*allocate_pinned)(std::size_t bytes) = nullptr;
  void (*release_pinned)(void* memory) = nullptr;
  // ipc_export names a block of allocate(); ipc_open opens the block in another process, at most
  // once per process. Both return null where they succeed, else the CUDA error's name. A block
  // whose owner has ended, or that lies on another GPU, cannot be opened; that is no failure of
  // this process.
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
  // Work that is queued on the stream from now on waits for the event; the calling thread does not.
  void (*stream_waits_for)(void* stream, void* event) = nullptr;
  // copy and zero run in the stream's order, and each side of a copy may lie in either memory.
  // Pageable host memory may be read before copy returns; pinned memory must stay as it is until
  // the stream has come past the copy.
  void (*copy)(void* stream, void* to, const void* from, std::size_t bytes) = nullptr;
  void (*zero)(void* stream, void* to, std::size_t bytes) = nullptr;
  // Work that the calling thread queues on the stream between begin_capture and end_capture is
  // recorded and does not run (graph.h). end_capture returns a cudaGraphExec_t, or null where the
  // GPU has no memory for one.
  void (*begin_capture)(void* stream) = nullptr;
  void* (*end_capture)(void* stream) = nullptr;
  void (*launch_graph)(void* graph, void* stream) = nullptr;
  void (*destroy_graph)(void* graph) = nullptr;
};

// The name and type of the module's one exported function. It returns null where the module was
// built for another abi.
inline constexpr const char* kCudaModuleEntry = "tandem_cuda_module";
using CudaModuleEntry = const CudaModule*(std::uint32_t abi);

// Opens the module at `path` and checks that there is a device to run on. Three errors
// (kInfeasible) are kept apart, each with the facts that were found: no module (or one that does
// not load), no driver, no device.
Result<const CudaModule*> open_cuda_module(const std::string& path);

// The path at which this process looks for the module: $TANDEM_CUDA_MODULE, else beside the
// executable or in ../lib.
std::string cuda_module_path();

// The module of this process, opened by the first call and kept until the process ends. Any thread
// may call; the error of a first call that failed is kept as well.
const Result<const CudaModule*>& cuda_module();

}  // namespace tandem::device
