#include "runtime/device/graph.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/device/cuda_module.h"

namespace tandem::device {

Graph Graph::capture(const Stream& stream, const std::function<void()>& work) {
  CHECK(stream.device == DeviceKind::kCuda);
  const CudaModule& module = *cuda_module().value();
  module.begin_capture(stream.native);
  work();
  Graph graph;
  graph.native_ = module.end_capture(stream.native);
  return graph;
}

Graph::~Graph() {
  if (native_ != nullptr) cuda_module().value()->destroy_graph(native_);
}

Graph::Graph(Graph&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  // `other` destroys the graph that this one had.
  std::swap(native_, other.native_);
  return *this;
}

void Graph::launch(const Stream& stream) const {
  CHECK(native_ != nullptr && stream.device == DeviceKind::kCuda);
  cuda_module().value()->launch_graph(native_, stream.native);
}

}  // namespace tandem::device
