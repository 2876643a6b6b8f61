#include "runtime/link/session_sender.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tandem::link {

SessionSender::SessionSender(const SessionLimits& limits)
    : limits_(limits), granted_(limits.window_frames_max), resend_after_(limits.resend_after) {}

Sent SessionSender::send(std::string frame, SessionCounters& counters) {
  if (frame.size() > limits_.frame_bytes_max) return Sent::kTooLarge;
  // SE-4. An empty queue accepts any frame, so that a frame larger than the queue is not stuck for
  // ever.
  const bool full = queue_.size() >= limits_.queue_frames_max ||
                    (!queue_.empty() && queue_bytes_ + frame.size() > limits_.queue_bytes_max);
  if (full) {
    ++counters.frames_refused;
    return Sent::kFull;
  }
  ++counters.frames_accepted;
  queue_bytes_ += frame.size();
  queue_.push(std::move(frame));
  return Sent::kAccepted;
}

bool SessionSender::may_send_next() const {
  const std::uint64_t index = sent_ - taken_;
  if (index >= queue_.size() || index >= limits_.window_frames_max || sent_ >= granted_) {
    return false;
  }
  // SE-2. One frame may always travel, whatever its size.
  return index == 0 || in_flight_bytes_ + queue_.bytes(index) <= limits_.window_bytes_max;
}

void SessionSender::go_back() {
  for (std::uint64_t i = acked_; i < sent_; ++i) in_flight_bytes_ -= queue_.bytes(i - taken_);
  sent_ = acked_;
  probe_ = true;
}

void SessionSender::tick(Time now) {
  if (resend_at_ && now >= *resend_at_) {
    // Nothing was heard in time: send again, and less often each time.
    go_back();
    resend_after_ = std::min(2 * resend_after_, limits_.resend_after_max);
    resend_at_.reset();
  }
  if (!resend_at_ && !queue_.empty()) resend_at_ = now + resend_after_;
}

std::uint32_t SessionSender::gather(std::string& packet, SessionCounters& counters) {
  std::uint32_t frames = 0;
  while (may_send_next()) {
    const std::string_view next = queue_[sent_ - taken_];
    const auto bytes = static_cast<std::uint32_t>(next.size());
    if (frames > 0 && packet.size() + sizeof(bytes) + bytes > limits_.packet_bytes_max) break;
    // The first frame always fits: it may be longer than packet_bytes_max.
    packet.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    packet.append(next);
    if (sent_ < sent_max_) ++counters.frames_resent;
    in_flight_bytes_ += bytes;
    ++sent_;
    ++frames;
  }
  sent_max_ = std::max(sent_max_, sent_);
  probe_ = false;
  return frames;
}

void SessionSender::take_ack(const PeerProgress& peer) {
  // Only progress restarts the timer: a peer that repeats old numbers must not hold off a resend.
  const bool progress = peer.expected > acked_ || peer.released > taken_;
  granted_ = std::max(granted_, peer.grant);
  for (; acked_ < peer.expected; ++acked_) {
    if (acked_ >= sent_) {  // it had travelled before go_back()
      in_flight_bytes_ += queue_.bytes(acked_ - taken_);
      ++sent_;
    }
    queue_.drop_bytes(acked_ - taken_);
  }
  for (; taken_ < peer.released; ++taken_) {
    in_flight_bytes_ -= queue_.bytes(0);
    queue_bytes_ -= queue_.bytes(0);
    queue_.pop();
  }
  if (!progress) return;
  resend_after_ = limits_.resend_after;
  resend_at_.reset();  // tick() starts it anew
}

void SessionSender::reconnected() {
  if (queue_.empty()) return;
  go_back();
  resend_after_ = limits_.resend_after;
  resend_at_.reset();
}

}  // namespace tandem::link
