// The reliability of one pair of peers, as a value: frames that one side accepts are delivered on
// the other in order and exactly once, whatever is lost, repeated, delayed or reordered in between,
// while both incarnations last. Pure: no socket, no clock, no thread; time is passed in. A ZeroMQ
// link drives it (link.h), and so does a simulated network.
//
// Not responsible for: dialling, heartbeats, deciding that a peer is gone.
//
// The user sends *frames*; *packets* travel. A packet is a header and any number of frames with
// consecutive sequence numbers. The header has the session's key and says how many frames its
// sender has received, how many its user has taken, and so how many the other side may send.
// Received frames need not travel again; taken ones make room for more. A loss is mended by going
// back to the first frame that was not received: the transport is TCP, in order except across a
// reconnect, so a receiver keeps no frames out of order.
//
// Invariants, while neither side's key changes:
//   SE-1  delivered frames are a prefix of accepted frames: in order, none missing, none twice.
//   SE-2  frames in flight never exceed the window, nor what the receiver granted.
//   SE-3  a packet of an older incarnation, epoch or attempt delivers nothing, is counted, and is
//         answered with a fence that ends the older session; of a newer one it ends this session.
//   SE-4  accepted frames that are not taken by the peer's user never exceed the queue's limits.
//   SE-5  any bytes at all may be received; malformed ones are counted and change nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/net/frame_queue.h"

namespace tandem::runtime {

// Names one session: the server's epoch, the client's incarnation, and which of that client's
// sessions.
// Ordered: a greater key fences a lesser one.
struct SessionKey {
  Epoch epoch;
  Incarnation incarnation;
  std::uint64_t attempt = 0;
  auto operator<=>(const SessionKey&) const = default;
};

struct SessionLimits {
  std::uint32_t queue_frames_max = 65'536;      // accepted and not yet taken by the peer's user
  std::uint64_t queue_bytes_max = 64ull << 20;  // of those; one frame is always accepted
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

enum class Received {
  kAccepted,   // may have delivered frames, none included
  kStale,      // of an older key; `answer` fences its sender
  kFenced,     // the peer knows a newer key than this one: this session is over
  kMalformed,  // not a packet of this protocol, or one that no honest peer could send
};

struct SessionCounters {
  std::uint64_t frames_accepted = 0, frames_refused = 0, frames_delivered = 0;
  std::uint64_t frames_resent = 0, frames_repeated = 0;  // sent again here; received again here
  std::uint64_t frames_early = 0;                        // beyond a gap, dropped
  std::uint64_t packets_sent = 0, packets_received = 0;
  std::uint64_t packets_stale = 0, packets_malformed = 0;
};

class Session {
 public:
  // CHECKed: the limits in frames are above 0.
  Session(SessionKey key, SessionLimits limits);

  Sent send(std::string frame);

  // The next packet that should travel, or nothing. Call until it returns nothing: after send(),
  // receive(), release(), reconnected(), and at next_deadline().
  std::optional<std::string> next_packet(Time now);
  std::optional<Time> next_deadline() const;

  // Appends the frames that the packet delivers, in order. `answer` is set to a packet (a fence)
  // that must travel back although this session has nothing to send.
  Received receive(std::string_view packet, Time now, std::vector<std::string>& delivered,
                   std::optional<std::string>& answer);

  // The user has taken `frames` more of the delivered ones: the peer may send as many more.
  // CHECKed: no more than were delivered.
  void release(std::uint32_t frames, Time now);

  // The transport was interrupted: whatever is in flight travels again.
  void reconnected();

  // Whether the peer's user has taken all accepted frames.
  bool flushed() const { return queue_.empty(); }
  std::size_t frames_queued() const { return queue_.size(); }  // accepted and not taken
  const SessionKey& key() const { return key_; }
  const SessionCounters& counters() const { return counters_; }

  // A fence: the packet that tells the holder of any lesser key that its session is over.
  // fence_key() reads the greater key from it; nothing: not a fence.
  static std::string fence(const SessionKey& newer);
  static std::optional<SessionKey> fence_key(std::string_view packet);

 private:
  struct Head;

  bool credible(const Head& head) const;
  void take_ack(const Head& head);
  void take_frames(std::string_view frames, const Head& head, Time now,
                   std::vector<std::string>& delivered);
  bool may_send_next() const;
  void go_back();
  void tell_soon(Time now);
  std::uint32_t gather(std::string& packet);

  const SessionKey key_;
  const SessionLimits limits_;
  SessionCounters counters_;

  // Sending. taken_ ≤ acked_ ≤ sent_ ≤ sent_max_ ≤ taken_ + queue_.size().
  // queue_[i] has sequence number taken_ + i, and its bytes until the peer has it.
  FrameQueue queue_;
  std::uint64_t queue_bytes_ = 0;
  std::uint64_t taken_ = 0;            // the peer's user has taken the frames before this one
  std::uint64_t acked_ = 0;            // the peer has frames before this one
  std::uint64_t sent_ = 0;             // the next frame to travel
  std::uint64_t sent_max_ = 0;         // frames from here on have never travelled
  std::uint64_t granted_;              // the peer accepts frames before this one
  std::uint64_t in_flight_bytes_ = 0;  // of frames taken_ … sent_ - 1
  Duration resend_after_;
  std::optional<Time> resend_at_;  // set while something is not taken
  bool probe_ = false;             // ask the peer how far it is, even without a frame to send

  // Receiving.
  std::uint64_t expected_ = 0;       // frames before this one were delivered
  std::uint64_t released_ = 0;       // … and those before this one were taken by the user
  std::uint64_t expected_told_ = 0;  // both as the peer last heard them
  std::uint64_t released_told_ = 0;
  std::uint64_t untold_bytes_ = 0;  // delivered since the peer was last told
  std::optional<Time> tell_at_;     // a packet must go by then, even without frames
  bool tell_now_ = false;           // … or as soon as possible
};

}  // namespace tandem::runtime
