// Thin wrappers around the CUDA runtime that decide one thing: which errors are answers. CUDA keeps
// an error and reports it again from a later call, so every error that is an answer (no memory, not
// ready, not shareable) is taken out of CUDA's record by cudaGetLastError(). All other errors end
// the process in CUDA_CHECK.
#include "runtime/device/cuda_functions.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/device/cuda_module.h"

namespace tandem::device {

void cuda_failed(const char* expression, cudaError_t error, const std::source_location& where) {
  std::fprintf(stderr, "CUDA error: %s (%s): %s at %s:%u\n", cudaGetErrorName(error),
               cudaGetErrorString(error), expression, where.file_name(),
               static_cast<unsigned>(where.line()));
  std::abort();
}

namespace {

CudaDevices devices() {
  CudaDevices found;
  if (cudaDriverGetVersion(&found.driver_version) != cudaSuccess) found.driver_version = 0;
  const cudaError_t error = cudaGetDeviceCount(&found.count);
  if (error != cudaSuccess) {
    found.count = 0;
    found.error = cudaGetErrorName(error);
  } else if (found.count == 0) {
    found.error = cudaGetErrorName(cudaErrorNoDevice);
  } else {
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    std::snprintf(found.name, sizeof found.name, "%s", properties.name);
    CUDA_CHECK(cudaDeviceGetPCIBusId(found.bus_id, sizeof found.bus_id, 0));
  }
  return found;
}

MemoryInfo memory_info() {
  MemoryInfo info;
  CUDA_CHECK(cudaMemGetInfo(&info.free_bytes, &info.total_bytes));
  return info;
}

// Running out of memory leaves CUDA's context whole.
bool out_of_memory(cudaError_t error) {
  if (error != cudaErrorMemoryAllocation) return false;
  static_cast<void>(cudaGetLastError());
  return true;
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (out_of_memory(error)) return nullptr;
  CUDA_CHECK(error);
  return memory;
}

void release(void* memory) { CUDA_CHECK(cudaFree(memory)); }

void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (out_of_memory(error)) return nullptr;
  CUDA_CHECK(error);
  return memory;
}

void release_pinned(void* memory) { CUDA_CHECK(cudaFreeHost(memory)); }

static_assert(sizeof(cudaIpcMemHandle_t) == kIpcHandleBytes);

// Turns an error of CUDA IPC into its name, which the caller reports; none of them is fatal.
const char* told(cudaError_t error) {
  if (error == cudaSuccess) return nullptr;
  static_cast<void>(cudaGetLastError());
  return cudaGetErrorName(error);
}

const char* ipc_export(void* memory, void* handle) {
  return told(cudaIpcGetMemHandle(static_cast<cudaIpcMemHandle_t*>(handle), memory));
}

const char* ipc_open(const void* handle, void** memory) {
  cudaIpcMemHandle_t named;
  std::memcpy(&named, handle, sizeof named);
  return told(cudaIpcOpenMemHandle(memory, named, cudaIpcMemLazyEnablePeerAccess));
}

// The block's owner may have ended and its mapping with it: then there is nothing to close.
void ipc_close(void* memory) {
  if (const char* error = told(cudaIpcCloseMemHandle(memory)))
    std::fprintf(stderr, "CUDA: another process's memory at %p not closed: %s\n", memory, error);
}

cudaStream_t native(void* stream) { return static_cast<cudaStream_t>(stream); }

void* create_stream() {
  cudaStream_t stream = nullptr;
  // Non-blocking: such a stream has no order with CUDA's default stream.
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void destroy_stream(void* stream) { CUDA_CHECK(cudaStreamDestroy(native(stream))); }

// The answer to a query: cudaErrorNotReady means no and is an error by its number alone.
bool done(cudaError_t error, const char* question) {
  if (error == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  cuda_check(error, question);
  return true;
}

void synchronize(void* stream) { CUDA_CHECK(cudaStreamSynchronize(native(stream))); }

bool stream_idle(void* stream) { return done(cudaStreamQuery(native(stream)), "cudaStreamQuery"); }

void* create_event() {
  cudaEvent_t event = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

void destroy_event(void* event) { CUDA_CHECK(cudaEventDestroy(static_cast<cudaEvent_t>(event))); }

void record_event(void* event, void* stream) {
  CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(event), native(stream)));
}

void wait_for_event(void* event) {
  CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
}

bool event_done(void* event) {
  return done(cudaEventQuery(static_cast<cudaEvent_t>(event)), "cudaEventQuery");
}

void stream_waits_for(void* stream, void* event) {
  CUDA_CHECK(cudaStreamWaitEvent(native(stream), static_cast<cudaEvent_t>(event), 0));
}

void copy(void* stream, void* to, const void* from, std::size_t bytes) {
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream)));
}

void zero(void* stream, void* to, std::size_t bytes) {
  CUDA_CHECK(cudaMemsetAsync(to, 0, bytes, native(stream)));
}

void begin_capture(void* stream) {
  // Thread-local, because other threads go on allocating and waiting while this one records.
  CUDA_CHECK(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal));
}

void* end_capture(void* stream) {
  cudaGraph_t recorded = nullptr;
  CUDA_CHECK(cudaStreamEndCapture(native(stream), &recorded));
  cudaGraphExec_t graph = nullptr;
  cudaError_t error = cudaGraphInstantiate(&graph, recorded, 0);
  CUDA_CHECK(cudaGraphDestroy(recorded));
  // The upload takes the graph's memory here, where a lack of it can be answered, and not in the
  // first launch.
  if (error == cudaSuccess) error = cudaGraphUpload(graph, native(stream));
  if (out_of_memory(error)) {
    if (graph != nullptr) CUDA_CHECK(cudaGraphExecDestroy(graph));
    return nullptr;
  }
  CUDA_CHECK(error);
  return graph;
}

void launch_graph(void* graph, void* stream) {
  CUDA_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), native(stream)));
}

void destroy_graph(void* graph) {
  CUDA_CHECK(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
}

}  // namespace

CudaModule cuda_functions() {
  return {.devices = devices,
          .memory_info = memory_info,
          .allocate = allocate,
          .release = release,
          .allocate_pinned = allocate_pinned,
          .release_pinned = release_pinned,
          .ipc_export = ipc_export,
          .ipc_open = ipc_open,
          .ipc_close = ipc_close,
          .create_stream = create_stream,
          .destroy_stream = destroy_stream,
          .synchronize = synchronize,
          .stream_idle = stream_idle,
          .create_event = create_event,
          .destroy_event = destroy_event,
          .record_event = record_event,
          .wait_for_event = wait_for_event,
          .event_done = event_done,
          .stream_waits_for = stream_waits_for,
          .copy = copy,
          .zero = zero,
          .begin_capture = begin_capture,
          .end_capture = end_capture,
          .launch_graph = launch_graph,
          .destroy_graph = destroy_graph};
}

}  // namespace tandem::device
