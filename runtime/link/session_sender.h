// The sending direction of a session (session.h): the queue of accepted frames, and which of them
// may travel now. Go-back-N with cumulative acknowledgements and credit. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/link/frame_queue.h"
#include "runtime/link/session_limits.h"

namespace tandem::link {

// The state of the peer as a receiver, as a packet's header tells it: sequence numbers from 0 that
// only grow.
struct PeerProgress {
  std::uint64_t expected = 0;  // the peer has frames before this one
  std::uint64_t released = 0;  // the peer's user has taken frames before this one
  std::uint64_t grant = 0;     // the peer accepts frames before this one
};

class SessionSender {
 public:
  explicit SessionSender(const SessionLimits& limits);

  Sent send(std::string frame, SessionCounters& counters);

  // Goes back to the first frame that the peer may lack if nothing was heard in time.
  void tick(Time now);
  // Whether a packet should travel: a frame may, or the peer is to be asked how far it is.
  bool wants_packet() const { return may_send_next() || probe_; }
  bool probing() const { return probe_; }
  std::uint64_t next() const { return sent_; }  // the number of the next frame to travel
  // Appends frames that may travel, each as a 32-bit length and its bytes, as many as a packet
  // takes. Returns their number. The packet also carries the probe.
  std::uint32_t gather(std::string& packet, SessionCounters& counters);
  std::optional<Time> resend_at() const { return resend_at_; }

  // A peer cannot have received frames that have never travelled.
  bool credible(const PeerProgress& peer) const { return peer.expected <= sent_max_; }
  void take_ack(const PeerProgress& peer);  // CHECKed by the caller: credible

  void reconnected();  // whatever is in flight travels again

  // Nothing is in flight, and one frame waits to travel.
  bool lone_frame() const { return sent_ == acked_ && sent_ + 1 == taken_ + queue_.size(); }
  std::size_t frames_queued() const { return queue_.size(); }  // accepted and not taken

 private:
  bool may_send_next() const;
  void go_back();

  const SessionLimits limits_;
  // taken_ ≤ acked_ ≤ sent_ ≤ sent_max_ ≤ taken_ + queue_.size().
  // queue_[i] has sequence number taken_ + i, and its bytes until the peer has it.
  FrameQueue queue_;
  std::uint64_t queue_bytes_ = 0;
  std::uint64_t taken_ = 0;            // the peer's user has taken the frames before this one
  std::uint64_t acked_ = 0;            // the peer has frames before this one
  std::uint64_t sent_ = 0;             // the next frame to travel
  std::uint64_t sent_max_ = 0;         // frames from here on have never travelled
  std::uint64_t granted_;              // the peer accepts frames before this one
  std::uint64_t in_flight_bytes_ = 0;  // the bytes of frames taken_ … sent_ - 1
  Duration resend_after_;
  std::optional<Time> resend_at_;  // set while something is not taken
  bool probe_ = false;             // ask the peer how far it is, even without a frame to send
};

}  // namespace tandem::link
