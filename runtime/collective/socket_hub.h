// Rank 0 of a socket gang: the centre of the star. In each call the hub hears every rank first, in
// rank order, and then answers every rank. It may wait for one rank at a time, because the others
// read and write at once (socket_spoke.h) and their sockets hold what the hub does not want yet;
// meanwhile it notices if any of them ends. Until its destructor runs it sends heartbeats to all
// ranks (CO-5). Internal to runtime/collective.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/connection.h"
#include "runtime/collective/frame_writer.h"
#include "runtime/collective/gang_spec.h"
#include "runtime/collective/heartbeat.h"

namespace tandem::collective {

class SocketHub : public Collective {
 public:
  // `peers[r - 1]` leads to rank r; all of them have been welcomed.
  SocketHub(std::vector<Stream> peers, const GangSpec& spec);

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(peers_.size()) + 1; }

  Result<void> all_reduce_sum(std::span<float> values, Duration timeout) override;
  Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) override;
  Result<void> await_broadcast(std::span<std::byte> bytes, std::string_view awaited) override;
  Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) override;
  Result<void> barrier(Duration timeout) override;

 private:
  struct Peer {
    explicit Peer(Stream connection) : stream(std::move(connection)), writer(stream) {}
    Stream stream;
    FrameWriter writer;
    bool answered = false;  // it has been sent all that this call owes it, so it may leave
  };

  // Every public call begins with open() and ends with close(), which breaks the gang on an error
  // (CO-4) and tells the other ranks why.
  Result<void> open(const Call& call, Duration timeout);
  Result<void> close(Result<void> outcome);
  // The work of the calls: sum() of all_reduce_sum, relay() of broadcast and barrier, gather() of
  // all_gather.
  Result<void> sum(std::span<float> values);
  Result<void> relay(std::span<std::byte> bytes, int root);
  Result<std::vector<std::string>> gather(std::string_view blob);

  // One frame from or to one rank of the call under way; each waits until the call's deadline.
  Result<FrameHeader> receive_header(int rank);
  Result<void> receive_payload(int rank, std::span<std::byte> bytes);
  Result<void> receive_frame(int rank, std::span<std::byte> bytes);
  Result<void> send_frame(int rank, std::span<const std::byte> bytes);
  Result<void> wait(int rank, short events);
  Heartbeat heartbeat() const;  // on the sender's thread
  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank) - 1]; }

  std::vector<std::unique_ptr<Peer>> peers_;
  const AddFloats add_;
  std::vector<float> addend_;  // one frame of another rank's values
  std::optional<Error> failure_;

  // The call under way.
  Call call_;
  std::uint64_t sequence_ = 0;  // the call's number, from 1; all ranks count alike
  Time deadline_;

  const GangLiveness liveness_;
  std::atomic<std::uint64_t> waits_ = 0;   // grows while a call waits; read by the sender's thread
  std::optional<HeartbeatSender> sender_;  // last: it uses peers_ and waits_
};

}  // namespace tandem::collective
