// Ranks 1 and up of a socket gang: one connection, to rank 0, read and written at once, so that
// rank 0 never waits for a rank that waits for rank 0. It skips rank 0's heartbeats wherever one
// comes, and judges by them whether rank 0 hangs (CO-5). Internal to runtime/collective.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/connection.h"
#include "runtime/collective/heartbeat.h"
#include "runtime/collective/socket.h"

namespace tandem::runtime {

class SocketSpoke : public Collective {
 public:
  SocketSpoke(OwnedFd hub, int rank, const GangSpec& spec)
      : hub_(std::move(hub)), rank_(rank), size_(spec.size), watch_(spec.liveness) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> all_reduce_sum(std::span<float> values, Duration timeout) override;
  Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) override;
  Result<void> await_broadcast(std::span<std::byte> bytes, std::string_view awaited) override;
  Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) override;
  Result<void> barrier(Duration timeout) override;

 private:
  // What rank 0 answers: so many frames, each put where `place` says, given its index and size.
  struct Answer {
    std::size_t frames = 1;
    std::function<std::span<std::byte>(std::size_t frame, std::size_t bytes)> place;
  };
  static Answer into(std::span<std::byte> block);

  // How long a call waits, and for what.
  struct Patience {
    std::optional<Duration> timeout;  // none: as long as rank 0 does not hang
    std::string awaited = {};         // empty: rank 0, in this call
  };

  Result<void> exchange(const Call& call, std::span<const std::byte> up, const Answer& answer,
                        Patience patience);
  Result<void> run(std::span<const std::byte> up, const Answer& answer);
  Result<bool> send_more(std::span<const std::byte> up);
  Result<bool> receive_more(const Answer& answer);
  Result<void> open_frame(const Answer& answer);
  void expect_header();
  Result<void> check_patience() const;
  void listen(bool can_send);

  const OwnedFd hub_;
  const int rank_;
  const int size_;
  RankZeroWatch watch_;
  std::optional<Error> failure_;

  // Of the call under way.
  Call call_;
  std::uint64_t sequence_ = 0;
  std::optional<Time> deadline_;
  std::string awaited_;
  std::size_t frame_out_ = 0;
  FrameHeader header_out_;
  std::span<const std::byte> header_rest_;
  std::span<const std::byte> payload_rest_;
  std::size_t frame_in_ = 0;
  FrameHeader header_in_;
  enum class Part { kHeader, kPayload, kHeartbeat };
  Part part_in_ = Part::kHeader;
  Heartbeat heartbeat_in_;
  std::span<std::byte> in_rest_;
  bool moved_ = false;  // data, either way, since it was last listened for
};

}  // namespace tandem::runtime
