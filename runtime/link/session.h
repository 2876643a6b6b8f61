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
// The two directions are session_sender.h and session_receiver.h; this class adds the key, and
// writes and reads packets.
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
#include "runtime/link/session_limits.h"
#include "runtime/link/session_receiver.h"
#include "runtime/link/session_sender.h"

namespace tandem::link {

// Names one session: the server's epoch, the client's incarnation, and which of that client's
// sessions.
// Ordered: a greater key fences a lesser one.
struct SessionKey {
  Epoch epoch;
  Incarnation incarnation;
  std::uint64_t attempt = 0;
  auto operator<=>(const SessionKey&) const = default;
};

enum class Received {
  kAccepted,   // may have delivered frames, none included
  kStale,      // the packet has an older key; `answer` fences its sender
  kFenced,     // the peer knows a newer key than this one: this session is over
  kMalformed,  // not a packet of this protocol, or one that no honest peer could send
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

  // Whether the frame that send() took last is the only one that the peer is not known to have.
  bool lone_frame() const { return sender_.lone_frame(); }
  // Whether the peer's user has taken all accepted frames.
  bool flushed() const { return sender_.frames_queued() == 0; }
  std::size_t frames_queued() const { return sender_.frames_queued(); }  // accepted and not taken
  const SessionKey& key() const { return key_; }
  const SessionCounters& counters() const { return counters_; }

  // A fence: the packet that tells the holder of any lesser key that its session is over.
  // fence_key() reads the greater key from it; nothing: not a fence.
  static std::string fence(const SessionKey& newer);
  static std::optional<SessionKey> fence_key(std::string_view packet);

 private:
  struct Head;

  bool credible(const Head& head) const;

  const SessionKey key_;
  SessionCounters counters_;
  SessionSender sender_;
  SessionReceiver receiver_;
};

}  // namespace tandem::link
