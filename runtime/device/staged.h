// Memory that the host fills and a device's operators read, or the other way round: ids, tables,
// rows of results. On a CPU both sides are one block and moving costs nothing; for a GPU the host's
// is pinned, and what moves does so in the stream's order.
//
// The host's side must not be written while an upload may still read it, nor read before a download
// has arrived: synchronize (queue.h) waits for both. A block may have several sides on the host, so
// that the next is filled while the one before is on its way; the device's side is one, and what
// moves keeps the stream's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/result.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::runtime {

class Staged {
 public:
  Staged() = default;
  static Result<Staged> allocate(std::size_t bytes, const char* purpose, DeviceKind device,
                                 std::size_t sides = 1);

  std::byte* host() const { return host(side_); }  // the side of now
  std::byte* host(std::size_t side) const { return host_.data() + side * stride_; }
  std::size_t side() const { return side_; }
  std::size_t size() const { return size_; }  // of a side

  // Of several sides: goes on to the one that was left longest ago, and waits until what was moved
  // to or from it is there.
  void turn();
  // Until what was moved last to or from a side is there.
  void wait(std::size_t side) const;

  // Where a device's operators find what the host has at `here`, on the side of now.
  template <class T>
  T* on_device(T* here) const {
    if (device_.data() == nullptr) return here;
    const std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(here) - host();
    CHECK(offset >= 0 && static_cast<std::size_t>(offset) <= size_);
    return reinterpret_cast<T*>(device_.data() + offset);
  }
  // The same of a view on the host's side.
  TensorView on_device(TensorView view) const {
    view.data = on_device(static_cast<std::byte*>(view.data));
    return view;
  }

  // The first `bytes` of the block.
  void upload(const Stream& stream, std::size_t bytes);
  void download(const Stream& stream, std::size_t bytes);

 private:
  void move(const Stream& stream, void* to, const void* from, std::size_t bytes);

  Buffer host_;
  Buffer device_;  // empty on a CPU
  std::size_t size_ = 0, stride_ = 0, side_ = 0;
  std::vector<Event> moved_;  // behind the last move of each side, where there are several
};

}  // namespace tandem::runtime
