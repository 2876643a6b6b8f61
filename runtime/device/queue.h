// A queue of work on a device, and what moves between memories in its order. On a CPU everything is
// done when a call returns, and synchronising costs nothing; on a GPU it is a CUDA stream.
#pragma once

#include <cstddef>

#include "runtime/device/stream.h"

namespace tandem::runtime {

// Owns a queue; `stream()` is what operators take. For a GPU the CUDA module must have been found.
class Queue {
 public:
  explicit Queue(DeviceKind device, ThreadPool* pool = nullptr);  // the pool: a CPU's threads
  ~Queue();                                                       // waits for what is queued
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  const Stream& stream() const { return stream_; }

 private:
  Stream stream_;
};

// Either side in any memory that the stream's device can reach. The host's side must stay as it is
// until synchronize has returned.
void copy(const Stream& stream, void* to, const void* from, std::size_t bytes);
void zero(const Stream& stream, void* to, std::size_t bytes);

// Waits until everything that was queued is done.
void synchronize(const Stream& stream);
// Whether it is, without waiting.
bool idle(const Stream& stream);

// A place in a queue's work that can be waited for while more is queued behind it. One thread.
class Event {
 public:
  Event() = default;
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  // From now on this is the place behind everything that the stream holds.
  void record(const Stream& stream);
  // Until what was queued before it is done; at once where nothing was recorded.
  void wait() const;
  // Whether it is done, without waiting.
  bool done() const;
  // Work that the stream is given from now on waits for the event; the calling thread does not.
  void hold_back(const Stream& stream) const;

 private:
  void* native_ = nullptr;  // cudaEvent_t, made when first recorded on a GPU's stream
};

}  // namespace tandem::runtime
