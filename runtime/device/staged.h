// A block of memory that the host fills and a device's operators read, or the other way round: ids,
// tables, rows of results. On a CPU both sides are one block, and moving costs nothing. For a GPU
// the host's side is pinned memory, and moves run in the stream's order.
//
// The host's side must not be written while an upload may still read it, nor read before a download
// has arrived: synchronize (queue.h) waits for both. A block may have several sides on the host, so
// that the host fills one while another is on its way. The device has one side; moves to and from
// it keep the stream's order.
//
// Used by one thread at a time.
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

namespace tandem::device {

class Staged {
 public:
  Staged() = default;
  // Allocates `sides` blocks of `bytes` bytes on the host and, for a GPU, one on the device. The
  // error is Buffer::allocate()'s.
  static Result<Staged> allocate(std::size_t bytes, const char* purpose, DeviceKind device,
                                 std::size_t sides = 1);

  std::byte* host() const { return host(side_); }  // the current side
  std::byte* host(std::size_t side) const { return host_.data() + side * stride_; }
  std::size_t side() const { return side_; }
  std::size_t size() const { return size_; }  // the size of one side

  // With several sides: makes the side that was current longest ago the current one, and waits
  // until the last move to or from that side has ended.
  void turn();
  // Waits until the last move to or from a side has ended. There must be several sides (CHECKed).
  void wait(std::size_t side) const;

  // The address at which a device's operators find the bytes that the host has at `here`, which
  // lies on the current side.
  template <class T>
  T* on_device(T* here) const {
    if (device_.data() == nullptr) return here;
    const std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(here) - host();
    CHECK(offset >= 0 && static_cast<std::size_t>(offset) <= size_);
    return reinterpret_cast<T*>(device_.data() + offset);
  }
  // The same for a view whose data lies on the current side of the host.
  TensorView on_device(TensorView view) const {
    view.data = on_device(static_cast<std::byte*>(view.data));
    return view;
  }

  // Copies the first `bytes` bytes of the current side to the device, or from the device. Neither
  // call waits.
  void upload(const Stream& stream, std::size_t bytes);
  void download(const Stream& stream, std::size_t bytes);

 private:
  void move(const Stream& stream, void* to, const void* from, std::size_t bytes);

  Buffer host_;
  Buffer device_;                                 // empty on a CPU
  std::size_t size_ = 0, stride_ = 0, side_ = 0;  // bytes; stride_ is from one side to the next
  std::vector<Event> moved_;  // by side: behind its last move; recorded only with several sides
};

}  // namespace tandem::device
