// Ranks 1 and up of a socket gang: one connection, to rank 0, read and written at once, so that
// rank 0 never waits for a rank that waits for rank 0. Internal to runtime/collective.
#pragma once

#include <functional>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/connection.h"

namespace tandem::runtime {

class SocketSpoke : public Collective {
 public:
  SocketSpoke(OwnedFd hub, int rank, int size) : hub_(std::move(hub)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> all_reduce_sum(std::span<float> values, Duration timeout) override;
  Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) override;
  Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) override;
  Result<void> barrier(Duration timeout) override;

 private:
  // What rank 0 answers: so many frames, each put where `place` says, given its index and size.
  struct Answer {
    std::size_t frames = 1;
    std::function<std::span<std::byte>(std::size_t frame, std::size_t bytes)> place;
  };
  static Answer into(std::span<std::byte> block);

  Result<void> exchange(const Call& call, std::span<const std::byte> up, const Answer& answer,
                        Duration timeout);
  Result<void> run(std::span<const std::byte> up, const Answer& answer);
  Result<bool> send_more(std::span<const std::byte> up);
  Result<bool> receive_more(const Answer& answer);

  const OwnedFd hub_;
  const int rank_;
  const int size_;
  std::optional<Error> failure_;

  // Of the call under way.
  Call call_;
  std::uint64_t sequence_ = 0;
  Time deadline_;
  std::size_t frame_out_ = 0;
  FrameHeader header_out_;
  std::span<const std::byte> header_rest_;
  std::span<const std::byte> payload_rest_;
  std::size_t frame_in_ = 0;
  FrameHeader header_in_;
  bool in_payload_ = false;
  std::span<std::byte> in_rest_;
};

}  // namespace tandem::runtime
