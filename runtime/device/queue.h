// A queue of work on a device, and the copies between memories that run in the queue's order. On a
// CPU all work is done when a call returns, and synchronising costs nothing. On a GPU a queue is a
// CUDA stream: calls return before the work is done.
//
// The functions below CHECK that the CUDA module has been found (cuda_module.h) where the device is
// a GPU. CUDA errors end the process.
#pragma once

#include <cstddef>

#include "runtime/device/stream.h"

namespace tandem::device {

// Owns a queue; operators take `stream()`, which must not be used after the queue has ended. On a
// CPU operators run on the threads of `pool`, which outlives the queue; null: they run on the
// caller's thread alone.
class Queue {
 public:
  explicit Queue(DeviceKind device, ThreadPool* pool = nullptr);
  ~Queue();  // waits for the work that is queued
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  const Stream& stream() const { return stream_; }

 private:
  Stream stream_;
};

// Copies and zeroes `bytes` bytes. Each side may lie in any memory that the stream's device can
// reach. The host's side must stay as it is until synchronize has returned.
void copy(const Stream& stream, void* to, const void* from, std::size_t bytes);
void zero(const Stream& stream, void* to, std::size_t bytes);

// Blocks the calling thread until everything that was queued is done.
void synchronize(const Stream& stream);
// Whether everything that was queued is done; never blocks.
bool idle(const Stream& stream);

// Marks a place in a queue's work, so that a thread or another stream can wait for the work before
// that place while more is queued behind it. Used by one thread at a time. On a CPU, and before the
// first record(), an event counts as reached: all waits return at once.
class Event {
 public:
  Event() = default;
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  // Moves the event to the place behind everything that the stream holds at this moment.
  void record(const Stream& stream);
  // Blocks the calling thread until the work before the event is done.
  void wait() const;
  // Whether the work before the event is done; never blocks.
  bool done() const;
  // Makes the stream wait: work that is queued on it from now on starts after the event. The
  // calling thread does not wait. `stream` must be a GPU's where the event was recorded (CHECKed).
  void hold_back(const Stream& stream) const;

 private:
  void* native_ = nullptr;  // cudaEvent_t, made when first recorded on a GPU's stream
};

}  // namespace tandem::device
