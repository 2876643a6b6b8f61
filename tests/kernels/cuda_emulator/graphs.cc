// The emulator's graphs: work that a stream records, and launches of it.
#include <vector>

#include "cuda_runtime.h"
#include "tests/kernels/cuda_emulator/driver.h"

using namespace tandem::emulator;

struct tandem_emulated_graph {
  std::vector<Item> work;
};

struct tandem_emulated_graph_exec {
  std::vector<Item> work;
  std::vector<StreamPosition> launched;  // behind the last launch on each stream
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(driver().mutex);
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  const StreamPointer held = find(stream);
  if (held->recorded) return cudaErrorIllegalState;
  held->recorded.emplace();
  held->recorder = std::this_thread::get_id();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(driver().mutex);
  const StreamPointer held = find(stream);
  if (!held->recorded) return cudaErrorIllegalState;
  if (held->recorder != std::this_thread::get_id()) return cudaErrorStreamCaptureWrongThread;
  *graph = new tandem_emulated_graph{.work = *std::move(held->recorded)};
  held->recorded.reset();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new tandem_emulated_graph_exec{.work = graph->work, .launched = {}};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  Lock lock(driver().mutex);
  const StreamPointer held = find(stream);
  if (held->recorded) return cudaErrorStreamCaptureUnsupported;
  for (const Item& item : executable->work) append(held, item);
  std::erase_if(executable->launched,
                [&](const StreamPosition& last) { return last.stream == held; });
  executable->launched.push_back({held, held->queued});
  start_early(lock, held);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Lock lock(driver().mutex);
  for (const StreamPosition& last : executable->launched) {
    if (last.stream->seen < last.items) {
      broken("a graph was destroyed before its work had run, as far as the host has waited");
    }
  }
  delete executable;
  return cudaSuccess;
}
