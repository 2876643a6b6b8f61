// Each function does the work at once on a CPU, or passes it to the CUDA module. value() CHECKs
// that the module is there: no stream or event of a GPU can exist without it.
#include "runtime/device/queue.h"

#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/device/cuda_module.h"

namespace tandem::device {

Queue::Queue(DeviceKind device, ThreadPool* pool) : stream_{.device = device, .pool = pool} {
  if (device == DeviceKind::kCuda) stream_.native = cuda_module().value()->create_stream();
}

Queue::~Queue() {
  if (stream_.device != DeviceKind::kCuda) return;
  synchronize(stream_);
  cuda_module().value()->destroy_stream(stream_.native);
}

void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (stream.device == DeviceKind::kCpu) {
    std::memcpy(to, from, bytes);
  } else {
    cuda_module().value()->copy(stream.native, to, from, bytes);
  }
}

void zero(const Stream& stream, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (stream.device == DeviceKind::kCpu) {
    std::memset(to, 0, bytes);
  } else {
    cuda_module().value()->zero(stream.native, to, bytes);
  }
}

void synchronize(const Stream& stream) {
  if (stream.device == DeviceKind::kCuda) cuda_module().value()->synchronize(stream.native);
}

bool idle(const Stream& stream) {
  return stream.device == DeviceKind::kCpu || cuda_module().value()->stream_idle(stream.native);
}

Event::~Event() {
  if (native_ != nullptr) cuda_module().value()->destroy_event(native_);
}

Event::Event(Event&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  // `other` destroys the event that this one had.
  std::swap(native_, other.native_);
  return *this;
}

void Event::record(const Stream& stream) {
  if (stream.device == DeviceKind::kCpu) return;
  const CudaModule& module = *cuda_module().value();
  if (native_ == nullptr) native_ = module.create_event();
  module.record_event(native_, stream.native);
}

void Event::wait() const {
  if (native_ != nullptr) cuda_module().value()->wait_for_event(native_);
}

bool Event::done() const {
  return native_ == nullptr || cuda_module().value()->event_done(native_);
}

void Event::hold_back(const Stream& stream) const {
  if (native_ == nullptr) return;  // a CPU's work is done already
  CHECK(stream.device == DeviceKind::kCuda);
  cuda_module().value()->stream_waits_for(stream.native, native_);
}

}  // namespace tandem::device
