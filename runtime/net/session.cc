// Go-back-N with cumulative acknowledgements and credit. Every packet of the peer tells `expected`
// (frames before it were received), `released` (frames before it were taken by the user) and
// `grant` (frames before it may be sent), all as sequence numbers from 0. The numbers only grow, so
// a packet that is repeated or late tells nothing new and does no harm.
//
// Easy to get wrong:
//   - After go_back() the peer may acknowledge frames beyond sent_, which were on their way.
//   - A closed window and a lost grant look alike to the sender. So the timer runs while any frame
//     is not taken, and its end sends at least a probe, which the peer answers with its numbers.
//   - Each number in a header is a peer's word: credible() compares it before any is used (SE-5).
#include "runtime/net/session.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/net/packet.h"

namespace tandem::runtime {

// The header of a packet, little endian. Frames follow, each as a 32-bit length and its bytes.
struct Session::Head {
  std::uint8_t kind = static_cast<std::uint8_t>(PacketKind::kFrames);
  std::uint8_t wants_answer = 0;
  std::uint16_t unused = 0;
  std::uint32_t frames = 0;
  std::uint64_t epoch = 0, incarnation = 0, attempt = 0;
  std::uint64_t first = 0;     // sequence number of the first frame
  std::uint64_t expected = 0;  // these three: of the sender of this packet, as a receiver
  std::uint64_t released = 0;
  std::uint64_t grant = 0;
};

namespace {

static_assert(std::endian::native == std::endian::little, "packets are copied as they lie");

// Sequence numbers end here, so that a sum of one and a count of frames cannot overflow.
constexpr std::uint64_t kSequenceMax = 1ull << 62;

// Whether `frames` consists of exactly `count` length-prefixed frames.
bool well_formed(std::string_view frames, std::uint32_t count) {
  for (; count > 0; --count) {
    std::uint32_t bytes = 0;
    if (frames.size() < sizeof(bytes)) return false;
    std::memcpy(&bytes, frames.data(), sizeof(bytes));
    frames.remove_prefix(sizeof(bytes));
    if (frames.size() < bytes) return false;
    frames.remove_prefix(bytes);
  }
  return frames.empty();
}

}  // namespace

Session::Session(SessionKey key, SessionLimits limits)
    : key_(key),
      limits_(limits),
      granted_(limits.window_frames_max),
      resend_after_(limits.resend_after) {
  CHECK(limits.window_frames_max > 0 && limits.queue_frames_max > 0);
}

Sent Session::send(std::string frame) {
  if (frame.size() > limits_.frame_bytes_max) return Sent::kTooLarge;
  // SE-4. An empty queue accepts any frame, so that a frame larger than the queue is not stuck for
  // ever.
  const bool full = queue_.size() >= limits_.queue_frames_max ||
                    (!queue_.empty() && queue_bytes_ + frame.size() > limits_.queue_bytes_max);
  if (full) {
    ++counters_.frames_refused;
    return Sent::kFull;
  }
  ++counters_.frames_accepted;
  queue_bytes_ += frame.size();
  queue_.push(std::move(frame));
  return Sent::kAccepted;
}

bool Session::may_send_next() const {
  const std::uint64_t index = sent_ - taken_;
  if (index >= queue_.size() || index >= limits_.window_frames_max || sent_ >= granted_) {
    return false;
  }
  // SE-2. One frame may always travel, whatever its size.
  return index == 0 || in_flight_bytes_ + queue_.bytes(index) <= limits_.window_bytes_max;
}

void Session::go_back() {
  for (std::uint64_t i = acked_; i < sent_; ++i) in_flight_bytes_ -= queue_.bytes(i - taken_);
  sent_ = acked_;
  probe_ = true;
}

std::uint32_t Session::gather(std::string& packet) {
  std::uint32_t frames = 0;
  while (may_send_next()) {
    const std::string_view next = queue_[sent_ - taken_];
    const auto bytes = static_cast<std::uint32_t>(next.size());
    if (frames > 0 && packet.size() + sizeof(bytes) + bytes > limits_.packet_bytes_max) break;
    // The first frame always fits: it may be longer than packet_bytes_max.
    packet.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    packet.append(next);
    if (sent_ < sent_max_) ++counters_.frames_resent;
    in_flight_bytes_ += bytes;
    ++sent_;
    ++frames;
  }
  sent_max_ = std::max(sent_max_, sent_);
  return frames;
}

std::optional<std::string> Session::next_packet(Time now) {
  if (resend_at_ && now >= *resend_at_) {
    // Nothing was heard in time: send again, and less often each time.
    go_back();
    resend_after_ = std::min(2 * resend_after_, limits_.resend_after_max);
    resend_at_.reset();
  }
  if (!resend_at_ && !queue_.empty()) resend_at_ = now + resend_after_;
  if (tell_at_ && now >= *tell_at_) tell_now_ = true;
  if (!may_send_next() && !tell_now_ && !probe_) return std::nullopt;

  Head head{.wants_answer = probe_,
            .epoch = key_.epoch.value,
            .incarnation = key_.incarnation.value,
            .attempt = key_.attempt,
            .first = sent_,
            .expected = expected_,
            .released = released_,
            .grant = released_ + limits_.window_frames_max};
  std::string packet(sizeof(head), '\0');
  head.frames = gather(packet);
  std::memcpy(packet.data(), &head, sizeof(head));
  expected_told_ = expected_;
  released_told_ = released_;
  untold_bytes_ = 0;
  tell_at_.reset();
  tell_now_ = probe_ = false;
  ++counters_.packets_sent;
  return packet;
}

std::optional<Time> Session::next_deadline() const {
  if (!resend_at_ || !tell_at_) return resend_at_ ? resend_at_ : tell_at_;
  return std::min(*resend_at_, *tell_at_);
}

Received Session::receive(std::string_view packet, Time now, std::vector<std::string>& delivered,
                          std::optional<std::string>& answer) {
  ++counters_.packets_received;
  if (const auto newer = fence_key(packet)) {
    // A fence for an earlier session of this end comes late.
    if (*newer > key_) return Received::kFenced;
    ++counters_.packets_stale;
    return Received::kAccepted;
  }
  Head head;
  const bool whole = packet.size() >= sizeof(head);
  if (whole) std::memcpy(&head, packet.data(), sizeof(head));
  if (!whole || head.kind != static_cast<std::uint8_t>(PacketKind::kFrames)) {
    ++counters_.packets_malformed;
    return Received::kMalformed;
  }
  const SessionKey key{{head.epoch}, {head.incarnation}, head.attempt};
  if (key < key_) {
    ++counters_.packets_stale;
    answer = fence(key_);
    return Received::kStale;
  }
  if (key > key_) return Received::kFenced;
  const std::string_view frames = packet.substr(sizeof(head));
  if (!credible(head) || !well_formed(frames, head.frames)) {
    ++counters_.packets_malformed;
    return Received::kMalformed;
  }
  take_ack(head);
  if (head.wants_answer) tell_now_ = true;
  if (head.frames > 0) take_frames(frames, head, now, delivered);
  return Received::kAccepted;
}

bool Session::credible(const Head& head) const {
  // A peer cannot have received frames that have never travelled.
  return head.released <= head.expected && head.expected <= sent_max_ &&
         head.first < kSequenceMax && head.grant < kSequenceMax;
}

void Session::take_ack(const Head& head) {
  // Only progress restarts the timer: a peer that repeats old numbers must not hold off a resend.
  const bool progress = head.expected > acked_ || head.released > taken_;
  granted_ = std::max(granted_, head.grant);
  for (; acked_ < head.expected; ++acked_) {
    if (acked_ >= sent_) {  // it had travelled before go_back()
      in_flight_bytes_ += queue_.bytes(acked_ - taken_);
      ++sent_;
    }
    queue_.drop_bytes(acked_ - taken_);
  }
  for (; taken_ < head.released; ++taken_) {
    in_flight_bytes_ -= queue_.bytes(0);
    queue_bytes_ -= queue_.bytes(0);
    queue_.pop();
  }
  if (!progress) return;
  resend_after_ = limits_.resend_after;
  resend_at_.reset();  // next_packet() starts it anew
}

void Session::take_frames(std::string_view frames, const Head& head, Time now,
                          std::vector<std::string>& delivered) {
  if (head.first > expected_) {
    // A gap: the frames are dropped, and the answer shows the peer where to go on.
    counters_.frames_early += head.frames;
    tell_now_ = true;
    return;
  }
  for (std::uint64_t sequence = head.first; sequence < head.first + head.frames; ++sequence) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, frames.data(), sizeof(bytes));
    const std::string_view frame = frames.substr(sizeof(bytes), bytes);
    frames.remove_prefix(sizeof(bytes) + bytes);
    if (sequence < expected_) {
      ++counters_.frames_repeated;
      tell_now_ = true;
      // Beyond the grant nothing is delivered: the memory of the inbox is bounded by this end.
    } else if (sequence < released_ + limits_.window_frames_max) {
      delivered.emplace_back(frame);
      untold_bytes_ += bytes;
      ++expected_;
      ++counters_.frames_delivered;
    }
  }
  tell_soon(now);
}

// The peer is told at once of received or taken frames when its window runs low, else after a delay
// in which a frame of this end may carry the news for nothing.
void Session::tell_soon(Time now) {
  const bool low = expected_ - expected_told_ >= limits_.window_frames_max / 4 + 1 ||
                   released_ - released_told_ >= limits_.window_frames_max / 4 + 1 ||
                   untold_bytes_ >= limits_.window_bytes_max / 4;
  if (low) tell_now_ = true;
  const bool news = expected_ != expected_told_ || released_ != released_told_;
  if (news && !tell_at_) tell_at_ = now + limits_.ack_after;
}

void Session::release(std::uint32_t frames, Time now) {
  released_ += frames;
  CHECK(released_ <= expected_);
  tell_soon(now);
}

void Session::reconnected() {
  if (queue_.empty()) return;
  go_back();
  resend_after_ = limits_.resend_after;
  resend_at_.reset();
}

std::string Session::fence(const SessionKey& newer) {
  const Head head{.kind = static_cast<std::uint8_t>(PacketKind::kFence),
                  .epoch = newer.epoch.value,
                  .incarnation = newer.incarnation.value,
                  .attempt = newer.attempt};
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head));
}

std::optional<SessionKey> Session::fence_key(std::string_view packet) {
  Head head;
  if (packet.size() != sizeof(head)) return std::nullopt;
  std::memcpy(&head, packet.data(), sizeof(head));
  if (head.kind != static_cast<std::uint8_t>(PacketKind::kFence)) return std::nullopt;
  return SessionKey{{head.epoch}, {head.incarnation}, head.attempt};
}

}  // namespace tandem::runtime
