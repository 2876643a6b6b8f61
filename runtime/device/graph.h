// Work that a GPU's queue runs over and over, recorded once: one launch instead of one per kernel.
//
//   const Graph step = Graph::capture(stream, [&] { decode(stream, batch); });
//   for (;;) { fill(batch); step.launch(stream); synchronize(stream); }
//
// GR-1  Recording runs nothing. A launch runs what was recorded, in the queue's order, on what
//       memory holds then.
// GR-2  Pointers, shapes and all numbers that operators were given stay as they were recorded. The
//       memory outlives the graph and stays in its place.
// GR-3  While it records, the thread neither allocates nor frees nor waits, and copies no host
//       memory but pinned: CUDA refuses, which ends the process.
// GR-4  No launch of it is under way when it is destroyed: the stream has been waited for.
//
// What an operator makes when it is first used (a kernel's code; the product library's answers, and
// the stream's workspace) must be there by GR-3. So the same work has run before, in the same
// shapes and on the same stream; and since products share the stream's workspace, their graph is
// launched on that stream alone.
#pragma once

#include <functional>

#include "runtime/device/stream.h"

namespace tandem::runtime {

class Graph {
 public:
  Graph() = default;  // of nothing; it cannot be launched
  // Records what `work` queues on the stream, which is a GPU's. Of nothing, where the GPU has no
  // memory for it.
  static Graph capture(const Stream& stream, const std::function<void()>& work);
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;

  explicit operator bool() const { return native_ != nullptr; }
  void launch(const Stream& stream) const;

 private:
  void* native_ = nullptr;  // cudaGraphExec_t
};

}  // namespace tandem::runtime
