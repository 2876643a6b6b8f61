// Rank 0 of a socket gang: the centre of the star. In each call it hears every rank first, in rank
// order, and then answers every rank. It may wait for one rank at a time, because the others read
// and write at once (socket_spoke.h) and their sockets hold what is not yet wanted; the hub notices
// the end of any of them meanwhile. Internal to runtime/collective.
#pragma once

#include <vector>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/connection.h"

namespace tandem::runtime {

class SocketHub : public Collective {
 public:
  // `peers[r - 1]` leads to rank r.
  SocketHub(std::vector<OwnedFd> peers, AddFloats add);

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(peers_.size()) + 1; }

  Result<void> all_reduce_sum(std::span<float> values, Duration timeout) override;
  Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) override;
  Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) override;
  Result<void> barrier(Duration timeout) override;

 private:
  struct Peer {
    OwnedFd fd;
    bool answered = false;   // has all that this call gives it, so it may leave
    bool mid_frame = false;  // a frame to it is half sent: an abort could not be told from data
  };

  Result<void> open(const Call& call, Duration timeout);
  Result<void> close(Result<void> outcome);  // of a call: an error breaks the gang
  Result<void> sum(std::span<float> values);
  Result<void> relay(std::span<std::byte> bytes, int root);
  Result<std::vector<std::string>> gather(std::string_view blob);

  Result<FrameHeader> receive_header(int rank);
  Result<void> receive_payload(int rank, std::span<std::byte> bytes);
  Result<void> receive_frame(int rank, std::span<std::byte> bytes);
  Result<void> send_frame(int rank, std::span<const std::byte> bytes);
  Result<void> wait(int rank, short events);
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank) - 1]; }

  std::vector<Peer> peers_;
  const AddFloats add_;
  std::vector<float> addend_;  // one frame
  std::optional<Error> failure_;

  // Of the call under way.
  Call call_;
  std::uint64_t sequence_ = 0;
  Time deadline_;
};

}  // namespace tandem::runtime
