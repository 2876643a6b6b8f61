// The receiving direction of a session (session.h): the frames that were delivered here, and when
// the peer is told about them. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/link/session_limits.h"

namespace tandem::link {

class SessionReceiver {
 public:
  explicit SessionReceiver(const SessionLimits& limits) : limits_(limits) {}

  // Appends the new ones of `count` frames, the first of which has the number `first`. `frames` is
  // well formed: each frame is a 32-bit length and its bytes.
  void take_frames(std::string_view frames, std::uint64_t first, std::uint32_t count, Time now,
                   std::vector<std::string>& delivered, SessionCounters& counters);
  // The user has taken `frames` more of the delivered ones. CHECKed: no more than were delivered.
  void release(std::uint32_t frames, Time now);

  std::uint64_t expected() const { return expected_; }
  std::uint64_t released() const { return released_; }
  std::uint64_t grant() const { return released_ + limits_.window_frames_max; }

  void tell_now() { tell_now_ = true; }  // a packet must go as soon as possible
  void tick(Time now) { tell_now_ = tell_now_ || (tell_at_ && now >= *tell_at_); }
  bool wants_packet() const { return tell_now_; }
  std::optional<Time> tell_at() const { return tell_at_; }
  void told();  // a packet with these numbers was made

 private:
  void tell_soon(Time now);

  const SessionLimits limits_;
  std::uint64_t expected_ = 0;       // frames before this one were delivered
  std::uint64_t released_ = 0;       // … and those before this one were taken by the user
  std::uint64_t expected_told_ = 0;  // both as the peer last heard them
  std::uint64_t released_told_ = 0;
  std::uint64_t untold_bytes_ = 0;  // delivered since the peer was last told
  std::optional<Time> tell_at_;     // a packet must go by then, even without frames
  bool tell_now_ = false;           // … or as soon as possible
};

}  // namespace tandem::link
