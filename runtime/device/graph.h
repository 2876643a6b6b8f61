// Work that a GPU's queue runs over and over, recorded once: one launch instead of one per kernel.
//
//   const Graph step = Graph::capture(stream, [&] { decode(stream, batch); });
//   for (;;) { fill(batch); step.launch(stream); synchronize(stream); }
//
// GR-1  Recording runs nothing. A launch runs the recorded work, in the queue's order, on the bytes
//       that memory holds at that time.
// GR-2  Pointers, shapes and all numbers that operators were given stay as they were recorded. The
//       memory outlives the graph and stays in its place.
// GR-3  While it records, the thread neither allocates nor frees nor waits, and copies no host
//       memory but pinned: CUDA refuses, which ends the process.
// GR-4  No launch of a graph is under way when the graph is destroyed: the stream has been waited
//       for.
//
// An operator may create things on first use: a kernel's code, the product library's answers, the
// stream's workspace. Because of GR-3 they must exist before a recording starts, so the same work
// has run before, in the same shapes and on the same stream. Since products share the stream's
// workspace, their graph is launched on that stream alone.
#pragma once

#include <functional>

#include "runtime/device/stream.h"

namespace tandem::device {

class Graph {
 public:
  Graph() = default;  // an empty graph, which cannot be launched
  // Records the work that `work` queues on the stream, which is a GPU's (CHECKed). The graph is
  // empty where the GPU has no memory for it; the caller then runs the work directly.
  static Graph capture(const Stream& stream, const std::function<void()>& work);
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;

  explicit operator bool() const { return native_ != nullptr; }
  void launch(const Stream& stream) const;

 private:
  void* native_ = nullptr;  // cudaGraphExec_t
};

}  // namespace tandem::device
