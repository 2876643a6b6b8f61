#include "runtime/link/session_receiver.h"

#include <cstring>

#include "runtime/base/check.h"

namespace tandem::link {

void SessionReceiver::take_frames(std::string_view frames, std::uint64_t first, std::uint32_t count,
                                  Time now, std::vector<std::string>& delivered,
                                  SessionCounters& counters) {
  if (first > expected_) {
    // A gap: the frames are dropped, and the answer shows the peer where to go on.
    counters.frames_early += count;
    tell_now_ = true;
    return;
  }
  for (std::uint64_t sequence = first; sequence < first + count; ++sequence) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, frames.data(), sizeof(bytes));
    const std::string_view frame = frames.substr(sizeof(bytes), bytes);
    frames.remove_prefix(sizeof(bytes) + bytes);
    if (sequence < expected_) {
      ++counters.frames_repeated;
      tell_now_ = true;
      // Beyond the grant nothing is delivered: the memory of the inbox is bounded by this end.
    } else if (sequence < grant()) {
      delivered.emplace_back(frame);
      untold_bytes_ += bytes;
      ++expected_;
      ++counters.frames_delivered;
    }
  }
  tell_soon(now);
}

// The peer is told at once of received or taken frames when its window runs low, else after a delay
// in which a frame of this end may carry the news for nothing.
void SessionReceiver::tell_soon(Time now) {
  const bool low = expected_ - expected_told_ >= limits_.window_frames_max / 4 + 1 ||
                   released_ - released_told_ >= limits_.window_frames_max / 4 + 1 ||
                   untold_bytes_ >= limits_.window_bytes_max / 4;
  if (low) tell_now_ = true;
  const bool news = expected_ != expected_told_ || released_ != released_told_;
  if (news && !tell_at_) tell_at_ = now + limits_.ack_after;
}

void SessionReceiver::release(std::uint32_t frames, Time now) {
  released_ += frames;
  CHECK(released_ <= expected_);
  tell_soon(now);
}

void SessionReceiver::told() {
  expected_told_ = expected_;
  released_told_ = released_;
  untold_bytes_ = 0;
  tell_at_.reset();
  tell_now_ = false;
}

}  // namespace tandem::link
