// Ranks 1 and up of a socket gang. A spoke has one connection, to rank 0, and reads and writes it
// at once, so that rank 0 never waits for a rank that waits for rank 0. It skips rank 0's
// heartbeats wherever they come, and judges by them whether rank 0 hangs (CO-5). Internal to
// runtime/collective.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/connection.h"
#include "runtime/collective/gang_spec.h"
#include "runtime/collective/heartbeat.h"

namespace tandem::collective {

class SocketSpoke : public Collective {
 public:
  // `hub` leads to rank 0, whose welcome has been received.
  SocketSpoke(Stream hub, int rank, const GangSpec& spec)
      : hub_(std::move(hub)), rank_(rank), size_(spec.size), watch_(spec.liveness) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> all_reduce_sum(std::span<float> values, Duration timeout) override;
  Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) override;
  Result<void> await_broadcast(std::span<std::byte> bytes, std::string_view awaited) override;
  Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) override;
  Result<void> barrier(Duration timeout) override;

 private:
  // The answer of rank 0 to a call: so many frames. place() says where the bytes of the next one
  // go; a span of another size means that the frame does not fit the call.
  struct Answer {
    std::size_t frames = 1;
    std::function<std::span<std::byte>(std::size_t frame, std::size_t bytes)> place;
  };
  // An answer that fills `block`, as frames_of() divides it.
  static Answer into(std::span<std::byte> block);

  // How long a call waits, and for what.
  struct Patience {
    std::optional<Duration> timeout;  // none: as long as rank 0 does not hang
    std::string awaited = {};         // for the Error; empty: rank 0, in this call
  };

  // One call: sends `up`, receives the answer. An error breaks the gang for this rank (CO-4) and
  // ends the connection, by which rank 0 notices.
  Result<void> exchange(const Call& call, std::span<const std::byte> up, const Answer& answer,
                        Patience patience);
  // The steps of exchange(); send_more() and receive_more() do as much as the socket allows now.
  Result<void> run(std::span<const std::byte> up, const Answer& answer);
  Result<bool> send_more(std::span<const std::byte> up);
  Result<bool> receive_more(const Answer& answer);
  Result<void> open_frame(const Answer& answer);
  void expect_header();
  Result<void> check_patience() const;
  void listen(bool can_send);

  Stream hub_;
  const int rank_;
  const int size_;
  RankZeroWatch watch_;
  std::optional<Error> failure_;

  // The call under way.
  Call call_;
  std::uint64_t sequence_ = 0;
  std::optional<Time> deadline_;
  std::string awaited_;
  // Sending: the next frame, and the unsent parts of the one before it.
  std::size_t frame_out_ = 0;
  FrameHeader header_out_;
  std::span<const std::byte> header_rest_;
  std::span<const std::byte> payload_rest_;
  // Receiving: the frame of the answer, and the rest of the part of it that is being received.
  std::size_t frame_in_ = 0;
  FrameHeader header_in_;
  enum class Part { kHeader, kPayload, kHeartbeat };
  Part part_in_ = Part::kHeader;
  Heartbeat heartbeat_in_;
  std::span<std::byte> in_rest_;
  bool moved_ = false;  // data went either way since this rank last listened
};

}  // namespace tandem::collective
