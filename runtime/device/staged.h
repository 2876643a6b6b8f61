// Memory that the host fills and a device's operators read, or the other way round: ids, tables,
// rows of results. On a CPU both sides are one block and moving costs nothing; for a GPU the host's
// is pinned, and what moves does so in the stream's order.
//
// The host's side must not be written while an upload may still read it, nor read before a download
// has arrived: synchronize (queue.h) waits for both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/check.h"
#include "runtime/base/result.h"
#include "runtime/device/memory.h"
#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::runtime {

class Staged {
 public:
  Staged() = default;
  static Result<Staged> allocate(std::size_t bytes, const char* purpose, DeviceKind device);

  std::byte* host() const { return host_.data(); }
  std::size_t size() const { return host_.size(); }

  // Where a device's operators find what the host has at `here`, which lies in this block.
  template <class T>
  T* on_device(T* here) const {
    if (device_.data() == nullptr) return here;
    const std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(here) - host_.data();
    CHECK(offset >= 0 && static_cast<std::size_t>(offset) <= host_.size());
    return reinterpret_cast<T*>(device_.data() + offset);
  }
  // The same of a view on the host's side.
  TensorView on_device(TensorView view) const {
    view.data = on_device(static_cast<std::byte*>(view.data));
    return view;
  }

  // The first `bytes` of the block.
  void upload(const Stream& stream, std::size_t bytes) const;
  void download(const Stream& stream, std::size_t bytes) const;

 private:
  Buffer host_;
  Buffer device_;  // empty on a CPU
};

}  // namespace tandem::runtime
