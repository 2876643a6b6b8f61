// The hub's side of each call: hear all ranks, compute, answer all ranks.
//
// all_reduce_sum goes frame by frame: while the sums of one frame travel back, the next frame of
// each rank is already on its way, and only one frame of one other rank needs memory here. The
// receive loop fixes the order of the additions (CO-1), so timing does not change the bits.
//
// Every wait watches all ranks that are still owed an answer (wait()): the end of any of them fails
// the call at once with that rank's number (CO-3), whichever rank is being heard.
#include "runtime/collective/socket_hub.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tandem::collective {

SocketHub::SocketHub(std::vector<Stream> peers, const GangSpec& spec)
    : add_(spec.add), liveness_(spec.liveness) {
  std::vector<FrameWriter*> writers;
  for (Stream& peer : peers) {
    writers.push_back(&peers_.emplace_back(std::make_unique<Peer>(std::move(peer)))->writer);
  }
  sender_.emplace(
      liveness_.heartbeat_every, [this] { return heartbeat(); }, std::move(writers));
}

// Either kind of progress changes the sum: both counters only grow.
Heartbeat SocketHub::heartbeat() const {
  const link::ProgressReport report =
      liveness_.progress ? liveness_.progress() : link::ProgressReport{.phase = "idle"};
  return make_heartbeat(report.counter + waits_, report.phase);
}

Result<void> SocketHub::open(const Call& call, Duration timeout) {
  if (failure_) return *failure_;
  call_ = call;
  ++sequence_;
  deadline_ = steady_now() + timeout;
  for (const auto& peer : peers_) peer->answered = false;
  return {};
}

Result<void> SocketHub::close(Result<void> outcome) {
  if (outcome || failure_) return outcome;
  failure_ = outcome.error();
  // CO-3: the other ranks return this rank's error, which names the rank to blame.
  for (const auto& peer : peers_) peer->writer.abort(*failure_);
  return outcome;
}

Result<void> SocketHub::all_reduce_sum(std::span<float> values, Duration timeout) {
  Result<void> opened =
      open({.operation = Operation::kAllReduceSum, .bytes = values.size_bytes()}, timeout);
  return close(opened ? sum(values) : opened);
}

Result<void> SocketHub::broadcast(std::span<std::byte> bytes, int root, Duration timeout) {
  CHECK(root >= 0 && root < size());
  const Call call{.operation = Operation::kBroadcast,
                  .root = static_cast<std::uint32_t>(root),
                  .bytes = bytes.size()};
  Result<void> opened = open(call, timeout);
  return close(opened ? relay(bytes, root) : opened);
}

Result<void> SocketHub::await_broadcast(std::span<std::byte>, std::string_view) {
  CHECK(false);  // rank 0 is the one who is awaited
}

Result<std::vector<std::string>> SocketHub::all_gather(std::string_view blob, Duration timeout) {
  CHECK(blob.size() <= kBlobBytesMax);
  if (auto opened = open({.operation = Operation::kAllGather}, timeout); !opened) {
    return opened.error();
  }
  Result<std::vector<std::string>> blobs = gather(blob);
  if (!blobs) return close(blobs.error()).error();
  return blobs;
}

Result<void> SocketHub::barrier(Duration timeout) {
  Result<void> opened = open({.operation = Operation::kBarrier}, timeout);
  return close(opened ? relay({}, 0) : opened);
}

// CO-1: the hub's own values are the accumulator, and ranks are added in rank order, frame by
// frame.
Result<void> SocketHub::sum(std::span<float> values) {
  addend_.resize(kFrameBytesMax / sizeof(float));
  const std::span<std::byte> bytes = std::as_writable_bytes(values);
  const std::size_t frames = frames_of(bytes.size());
  for (std::size_t frame = 0; frame < frames; ++frame) {
    const std::span<std::byte> part = frame_part(bytes, frame);
    const std::span<std::byte> addend =
        std::as_writable_bytes(std::span(addend_)).subspan(0, part.size());
    for (int rank = 1; rank < size(); ++rank) {
      if (auto got = receive_frame(rank, addend); !got) return got;
      add_(reinterpret_cast<float*>(part.data()), addend_.data(), part.size() / sizeof(float));
    }
    for (int rank = 1; rank < size(); ++rank) {
      if (auto sent = send_frame(rank, part); !sent) return sent;
      peer(rank).answered = frame + 1 == frames;  // then it may leave while others are still served
    }
  }
  return {};
}

// Hears every rank, the root's bytes among them, and passes these on. Each rank sends and gets at
// least one empty frame, so that all ranks meet. A barrier is a relay of nothing.
Result<void> SocketHub::relay(std::span<std::byte> bytes, int root) {
  const std::size_t frames = frames_of(bytes.size());
  for (int rank = 1; rank < size(); ++rank) {
    for (std::size_t frame = 0; frame < (rank == root ? frames : 1); ++frame) {
      const auto part = rank == root ? frame_part(bytes, frame) : std::span<std::byte>();
      if (auto got = receive_frame(rank, part); !got) return got;
    }
  }
  for (int rank = 1; rank < size(); ++rank) {
    for (std::size_t frame = 0; frame < (rank == root ? 1 : frames); ++frame) {
      const auto part = rank == root ? std::span<std::byte>() : frame_part(bytes, frame);
      if (auto sent = send_frame(rank, part); !sent) return sent;
    }
    peer(rank).answered = true;
  }
  return {};
}

Result<std::vector<std::string>> SocketHub::gather(std::string_view blob) {
  std::vector<std::string> blobs = {std::string(blob)};
  for (int rank = 1; rank < size(); ++rank) {
    const Result<FrameHeader> header = receive_header(rank);
    if (!header) return header.error();
    // Bounded: plausible() has refused a frame above kFrameBytesMax.
    std::string& theirs = blobs.emplace_back(header->bytes, '\0');
    if (auto got = receive_payload(rank, std::as_writable_bytes(std::span(theirs))); !got) {
      return got.error();
    }
  }
  for (int rank = 1; rank < size(); ++rank) {
    for (const std::string& each : blobs) {
      if (auto sent = send_frame(rank, std::as_bytes(std::span(each))); !sent) return sent.error();
    }
    peer(rank).answered = true;
  }
  return blobs;
}

Result<FrameHeader> SocketHub::receive_header(int rank) {
  FrameHeader header;
  if (auto got = receive_payload(rank, bytes_of(header)); !got) return got.error();
  if (!plausible(header) || header.kind != FrameKind::kData) {
    return no_frame_of_ours(rank);
  }
  // CO-3: the rank that makes another call is named together with its call.
  if (header.call != call_) return ranks_disagree(rank, header.call, 0, call_);
  if (header.sequence != sequence_) return no_frame_of_ours(rank);
  return header;
}

Result<void> SocketHub::receive_frame(int rank, std::span<std::byte> bytes) {
  const Result<FrameHeader> header = receive_header(rank);
  if (!header) return header.error();
  if (header->bytes != bytes.size()) return no_frame_of_ours(rank);
  return receive_payload(rank, bytes);
}

Result<void> SocketHub::receive_payload(int rank, std::span<std::byte> bytes) {
  for (;;) {
    switch (peer(rank).stream.receive_some(bytes)) {
      case Transfer::kDone:
        return {};
      case Transfer::kClosed:
        return rank_gone(call_, rank);
      case Transfer::kWouldBlock:
        if (auto ready = wait(rank, POLLIN); !ready) return ready;
    }
  }
}

Result<void> SocketHub::send_frame(int rank, std::span<const std::byte> bytes) {
  FrameHeader header;
  header.magic = kFrameMagic;
  header.call = call_;
  header.sequence = sequence_;
  header.bytes = static_cast<std::uint32_t>(bytes.size());
  const Result<Transfer> sent =
      peer(rank).writer.write(header, bytes, [this, rank] { return wait(rank, POLLOUT); });
  if (!sent) return sent.error();
  if (*sent == Transfer::kClosed) return rank_gone(call_, rank);
  return {};
}

// Waits until rank `rank` can go on, the deadline passes, or any rank that is still owed something
// ends; at most for the time between two heartbeats, so that each heartbeat tells the others that
// this rank only waits. Returning early is fine: the callers try again.
Result<void> SocketHub::wait(int rank, short events) {
  std::vector<pollfd> set;
  std::vector<int> ranks;
  for (int other = 1; other < size(); ++other) {
    if (peer(other).answered) continue;
    const auto wanted = static_cast<short>(POLLRDHUP | (other == rank ? events : 0));
    set.push_back({.fd = peer(other).stream.fd(), .events = wanted, .revents = 0});
    ranks.push_back(other);
  }
  ++waits_;
  if (liveness_.beat) liveness_.beat();
  const Time end = std::min(deadline_, steady_now() + liveness_.heartbeat_every);
  const int ready = ::poll(set.data(), set.size(), poll_timeout_ms(end));
  CHECK(ready >= 0 || errno == EINTR);
  for (std::size_t i = 0; i < set.size() && ready > 0; ++i) {
    if (set[i].revents == 0) continue;
    // The transfer tells data from an end of the connection. A rank that only stopped sending
    // (POLLRDHUP) cannot go on with a transfer either.
    const bool can_go_on = (set[i].revents & (events | POLLERR | POLLHUP)) != 0;
    if (ranks[i] == rank && can_go_on) return {};
    return rank_gone(call_, ranks[i]);
  }
  if (ready == 0 && steady_now() >= deadline_) return timed_out(call_, rank);
  return {};
}

}  // namespace tandem::collective
