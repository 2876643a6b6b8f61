// The spoke's side of each call, one loop for all of them (run): send what the socket takes,
// receive what it has, judge whether to go on waiting, listen. Sending and receiving never wait for
// each other, because rank 0 may be able to go on only if this rank reads while it still has frames
// to send.
//
// Easy to get wrong: time is judged only after everything that had come was read. A process that
// was stopped beyond its deadline then finds the answer first, and accuses rank 0 only of real
// silence.
#include "runtime/collective/socket_spoke.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tandem::collective {
namespace {

// Heartbeats read in a row before this rank looks at its own sending and at the time again: more
// than the buffers of a connection hold from an honest rank 0, and a bound for a flood.
constexpr int kHeartbeatsPerTurn = 4096;

}  // namespace

SocketSpoke::Answer SocketSpoke::into(std::span<std::byte> block) {
  return {.frames = frames_of(block.size()),
          .place = [block](std::size_t frame, std::size_t) { return frame_part(block, frame); }};
}

// Sums replace addends in place: a frame of the answer comes only after rank 0 has received that
// frame from every rank.
Result<void> SocketSpoke::all_reduce_sum(std::span<float> values, Duration timeout) {
  const std::span<std::byte> bytes = std::as_writable_bytes(values);
  return exchange({.operation = Operation::kAllReduceSum, .bytes = bytes.size()}, bytes,
                  into(bytes), {.timeout = timeout});
}

Result<void> SocketSpoke::broadcast(std::span<std::byte> bytes, int root, Duration timeout) {
  CHECK(root >= 0 && root < size_);
  const Call call{.operation = Operation::kBroadcast,
                  .root = static_cast<std::uint32_t>(root),
                  .bytes = bytes.size()};
  // The root sends, and gets an empty frame by which it knows that all ranks came.
  if (root == rank_) return exchange(call, bytes, into({}), {.timeout = timeout});
  return exchange(call, {}, into(bytes), {.timeout = timeout});
}

Result<void> SocketSpoke::await_broadcast(std::span<std::byte> bytes, std::string_view awaited) {
  const Call call{.operation = Operation::kBroadcast, .root = 0, .bytes = bytes.size()};
  return exchange(call, {}, into(bytes), {.timeout = {}, .awaited = std::string(awaited)});
}

Result<std::vector<std::string>> SocketSpoke::all_gather(std::string_view blob, Duration timeout) {
  CHECK(blob.size() <= kBlobBytesMax);
  std::vector<std::string> blobs(static_cast<std::size_t>(size_));
  const Answer answer{.frames = blobs.size(),
                      .place = [&blobs](std::size_t frame, std::size_t bytes) {
                        blobs[frame].resize(bytes);
                        return std::as_writable_bytes(std::span(blobs[frame]));
                      }};
  auto done = exchange({.operation = Operation::kAllGather}, std::as_bytes(std::span(blob)), answer,
                       {.timeout = timeout});
  if (!done) return done.error();
  return blobs;
}

Result<void> SocketSpoke::barrier(Duration timeout) {
  return exchange({.operation = Operation::kBarrier}, {}, into({}), {.timeout = timeout});
}

Result<void> SocketSpoke::exchange(const Call& call, std::span<const std::byte> up,
                                   const Answer& answer, Patience patience) {
  if (failure_) return *failure_;
  call_ = call;
  ++sequence_;
  deadline_.reset();
  // Rank 0 has the same timeout and knows which rank it waited for. The grace lets its error come
  // first.
  if (patience.timeout) deadline_ = steady_now() + *patience.timeout + kAbortGrace;
  awaited_ = patience.awaited.empty() ? "it in " + describe(call) : std::move(patience.awaited);
  frame_out_ = 0;
  header_rest_ = {};
  payload_rest_ = {};
  frame_in_ = 0;
  expect_header();
  watch_.begin_call();
  Result<void> done = run(up, answer);
  if (done) return done;
  failure_ = done.error();
  ::shutdown(hub_.fd(), SHUT_RDWR);
  return done;
}

Result<void> SocketSpoke::run(std::span<const std::byte> up, const Answer& answer) {
  bool can_send = true;
  for (;;) {
    moved_ = false;
    if (can_send) {
      const Result<bool> sent = send_more(up);
      // An error of sending means that rank 0 no longer reads. Its abort, with the reason, may
      // still be there to be received.
      if (!sent || *sent) can_send = false;
    }
    const Result<bool> received = receive_more(answer);
    if (!received) return received.error();
    if (*received) return {};
    if (auto patient = check_patience(); !patient) return patient;
    listen(can_send);
  }
}

// Called after everything that had come was read. A call in which data moved is not timed out yet.
Result<void> SocketSpoke::check_patience() const {
  if (auto hung = watch_.verdict(rank_, awaited_)) return *std::move(hung);
  if (!moved_ && deadline_ && steady_now() >= *deadline_) return timed_out(call_, 0);
  return {};
}

void SocketSpoke::listen(bool can_send) {
  pollfd ready{.fd = hub_.fd(),
               .events = static_cast<short>(POLLIN | (can_send ? POLLOUT : 0)),
               .revents = 0};
  const Time start = steady_now();
  const Time end = start + watch_.pace();
  const int count = ::poll(&ready, 1, poll_timeout_ms(std::min(end, deadline_.value_or(end))));
  CHECK(count >= 0 || errno == EINTR);
  watch_.listened(steady_now() - start);
}

// True once all frames are sent; false if the socket takes no more now.
Result<bool> SocketSpoke::send_more(std::span<const std::byte> up) {
  for (;;) {
    for (std::span<const std::byte>* rest : {&header_rest_, &payload_rest_}) {
      const std::size_t before = rest->size();
      const Transfer step = hub_.send_some(*rest);
      moved_ = moved_ || rest->size() < before;
      if (step == Transfer::kClosed) return rank_gone(call_, 0);
      if (step == Transfer::kWouldBlock) return false;
    }
    if (frame_out_ == frames_of(up.size())) return true;
    payload_rest_ = frame_part(up, frame_out_++);
    header_out_.magic = kFrameMagic;
    header_out_.call = call_;
    header_out_.sequence = sequence_;
    header_out_.bytes = static_cast<std::uint32_t>(payload_rest_.size());
    header_rest_ = bytes_of(std::as_const(header_out_));
  }
}

void SocketSpoke::expect_header() {
  part_in_ = Part::kHeader;
  in_rest_ = bytes_of(header_in_);
}

// True once the whole answer is here; false if nothing more is there now, or only heartbeats.
Result<bool> SocketSpoke::receive_more(const Answer& answer) {
  for (int heartbeats = 0; heartbeats < kHeartbeatsPerTurn;) {
    const std::size_t before = in_rest_.size();
    const Transfer step = hub_.receive_some(in_rest_);
    if (in_rest_.size() < before) {
      watch_.heard();
      // Heartbeats do not count: they would keep a call without an answer from its timeout.
      moved_ = moved_ || part_in_ == Part::kPayload;
    }
    if (step == Transfer::kClosed) return rank_gone(call_, 0);
    if (step == Transfer::kWouldBlock) return false;
    switch (part_in_) {
      case Part::kHeader:
        if (auto opened = open_frame(answer); !opened) return opened.error();
        break;
      case Part::kHeartbeat:
        watch_.heard(heartbeat_in_);
        ++heartbeats;
        expect_header();
        break;
      case Part::kPayload:
        if (++frame_in_ == answer.frames) return true;
        expect_header();
        break;
    }
  }
  return false;
}

// A header is complete: decides where its payload goes, or that the call ends here.
Result<void> SocketSpoke::open_frame(const Answer& answer) {
  if (!plausible(header_in_)) return no_frame_of_ours(0);
  if (header_in_.kind == FrameKind::kAbort) {
    return receive_abort(hub_, header_in_, deadline_.value_or(steady_now() + kAbortGrace));
  }
  if (header_in_.kind == FrameKind::kHeartbeat) {
    part_in_ = Part::kHeartbeat;
    in_rest_ = std::as_writable_bytes(std::span(&heartbeat_in_, 1));
    return {};
  }
  // place() below writes only where this call's own memory is.
  if (header_in_.call != call_ || header_in_.sequence != sequence_) return no_frame_of_ours(0);
  part_in_ = Part::kPayload;
  in_rest_ = answer.place(frame_in_, header_in_.bytes);
  if (in_rest_.size() != header_in_.bytes) return no_frame_of_ours(0);
  return {};
}

}  // namespace tandem::collective
