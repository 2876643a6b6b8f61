#include "runtime/collective/frame_writer.h"

#include <sys/socket.h>

namespace tandem::collective {

Result<Transfer> FrameWriter::write(const FrameHeader& header, std::span<const std::byte> payload,
                                    const std::function<Result<void>()>& until_writable) {
  const std::lock_guard lock(mutex_);
  if (closed_) return Transfer::kClosed;
  closed_ = true;  // each early return leaves a frame half written; undone below
  // FW-1: the rest of a heartbeat that beat() has begun goes first.
  for (std::span<const std::byte> part : {beat_rest_, bytes_of(header), payload}) {
    for (;;) {
      const Transfer step = stream_.send_some(part);
      if (step == Transfer::kDone) break;
      if (step == Transfer::kClosed) return step;
      if (auto ready = until_writable(); !ready) return ready.error();
    }
  }
  beat_rest_ = {};
  closed_ = false;
  return Transfer::kDone;
}

void FrameWriter::beat(const Heartbeat& heartbeat) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || closed_) return;
  if (beat_rest_.empty()) {
    beat_ = frame_of(heartbeat);
    beat_rest_ = std::as_bytes(std::span(beat_));
  }
  const Transfer step = stream_.send_some(beat_rest_);
  if (step == Transfer::kClosed) closed_ = true;
  // A frame of which no byte went out is dropped: the next heartbeat is newer.
  if (beat_rest_.size() == beat_.size()) beat_rest_ = {};
}

void FrameWriter::abort(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (closed_ || stream_.send_some(beat_rest_) != Transfer::kDone) {
    ::shutdown(stream_.fd(), SHUT_RDWR);
  } else {
    send_abort(stream_, error);
  }
  closed_ = true;
}

}  // namespace tandem::collective
