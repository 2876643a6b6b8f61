// Go-back-N with cumulative acknowledgements and credit. Every packet of the peer tells `expected`
// (frames before it were received), `released` (frames before it were taken by the user) and
// `grant` (frames before it may be sent), all as sequence numbers from 0. The numbers only grow, so
// a packet that is repeated or late tells nothing new and does no harm.
//
// Easy to get wrong:
//   - After the sender has gone back, the peer may acknowledge frames beyond the next one to
//     travel, which were on their way.
//   - A closed window and a lost grant look alike to the sender. So the timer runs while any frame
//     is not taken, and its end sends at least a probe, which the peer answers with its numbers.
//   - Each number in a header is a peer's word: credible() compares it before any is used (SE-5).
#include "runtime/link/session.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/link/packet.h"

namespace tandem::link {

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
    : key_(key), sender_(limits), receiver_(limits) {
  CHECK(limits.window_frames_max > 0 && limits.queue_frames_max > 0);
}

Sent Session::send(std::string frame) { return sender_.send(std::move(frame), counters_); }

std::optional<std::string> Session::next_packet(Time now) {
  sender_.tick(now);
  receiver_.tick(now);
  if (!sender_.wants_packet() && !receiver_.wants_packet()) return std::nullopt;
  Head head{.wants_answer = sender_.probing(),
            .epoch = key_.epoch.value,
            .incarnation = key_.incarnation.value,
            .attempt = key_.attempt,
            .first = sender_.next(),
            .expected = receiver_.expected(),
            .released = receiver_.released(),
            .grant = receiver_.grant()};
  std::string packet(sizeof(head), '\0');
  head.frames = sender_.gather(packet, counters_);
  std::memcpy(packet.data(), &head, sizeof(head));
  receiver_.told();
  ++counters_.packets_sent;
  return packet;
}

std::optional<Time> Session::next_deadline() const {
  const std::optional<Time> resend_at = sender_.resend_at(), tell_at = receiver_.tell_at();
  if (!resend_at || !tell_at) return resend_at ? resend_at : tell_at;
  return std::min(*resend_at, *tell_at);
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
  sender_.take_ack({.expected = head.expected, .released = head.released, .grant = head.grant});
  if (head.wants_answer) receiver_.tell_now();
  if (head.frames > 0)
    receiver_.take_frames(frames, head.first, head.frames, now, delivered, counters_);
  return Received::kAccepted;
}

bool Session::credible(const Head& head) const {
  return sender_.credible({.expected = head.expected}) && head.released <= head.expected &&
         head.first < kSequenceMax && head.grant < kSequenceMax;
}

void Session::release(std::uint32_t frames, Time now) { receiver_.release(frames, now); }

void Session::reconnected() { sender_.reconnected(); }

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

}  // namespace tandem::link
