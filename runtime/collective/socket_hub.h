// Rank 0 of a socket gang: the centre of the star. In each call it hears every rank first, in rank
// order, and then answers every rank. It may wait for one rank at a time, because the others read
// and write at once (socket_spoke.h) and their sockets hold what is not yet wanted; the hub notices
// the end of any of them meanwhile. From its making to its end it sends them heartbeats (CO-5).
// Internal to runtime/collective.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/connection.h"
#include "runtime/collective/frame_writer.h"
#include "runtime/collective/heartbeat.h"
#include "runtime/collective/socket.h"

namespace tandem::runtime {

class SocketHub : public Collective {
 public:
  // `peers[r - 1]` leads to rank r.
  SocketHub(std::vector<OwnedFd> peers, const GangSpec& spec);

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(peers_.size()) + 1; }

  Result<void> all_reduce_sum(std::span<float> values, Duration timeout) override;
  Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) override;
  Result<void> await_broadcast(std::span<std::byte> bytes, std::string_view awaited) override;
  Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) override;
  Result<void> barrier(Duration timeout) override;

 private:
  struct Peer {
    explicit Peer(OwnedFd socket) : fd(std::move(socket)), writer(fd.get()) {}
    const OwnedFd fd;
    FrameWriter writer;
    bool answered = false;  // has all that this call gives it, so it may leave
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
  Heartbeat heartbeat() const;  // on the sender's thread
  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank) - 1]; }

  std::vector<std::unique_ptr<Peer>> peers_;
  const AddFloats add_;
  std::vector<float> addend_;  // one frame
  std::optional<Error> failure_;

  // Of the call under way.
  Call call_;
  std::uint64_t sequence_ = 0;
  Time deadline_;

  const GangLiveness liveness_;
  std::atomic<std::uint64_t> waits_ = 0;   // grows while a call waits: it is not stuck
  std::optional<HeartbeatSender> sender_;  // last: it uses peers_ and waits_
};

}  // namespace tandem::runtime
