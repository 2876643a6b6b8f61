// The limits and the counters of a session (session.h), which its two directions share.
#pragma once

#include <cstdint>

#include "runtime/base/clock.h"

namespace tandem::link {

struct SessionLimits {
  std::uint32_t queue_frames_max = 65'536;  // accepted and not yet taken by the peer's user
  // Bytes of those frames; one frame is always accepted.
  std::uint64_t queue_bytes_max = 64ull << 20;
  std::uint32_t window_frames_max = 8'192;      // in flight, and granted ahead to the peer
  std::uint64_t window_bytes_max = 8ull << 20;  // in flight; one frame may always be
  std::uint64_t frame_bytes_max = 16ull << 20;
  std::uint64_t packet_bytes_max = 128ull << 10;  // frames are gathered up to this; one always fits
  Duration resend_after = std::chrono::milliseconds(300);  // doubles while nothing is heard
  Duration resend_after_max = std::chrono::seconds(3);
  Duration ack_after = std::chrono::milliseconds(20);  // unless a frame carries the news sooner
};

enum class Sent {
  kAccepted,
  kFull,      // the queue's limit: try again later, or slow down
  kGone,      // the peer is not up, or it was fenced
  kTooLarge,  // over frame_bytes_max: never
};

struct SessionCounters {
  std::uint64_t frames_accepted = 0, frames_refused = 0, frames_delivered = 0;
  std::uint64_t frames_resent = 0, frames_repeated = 0;  // sent again here; received again here
  std::uint64_t frames_early = 0;                        // beyond a gap, dropped
  std::uint64_t packets_sent = 0, packets_received = 0;
  std::uint64_t packets_stale = 0, packets_malformed = 0;
};

}  // namespace tandem::link
