// Blocks are sent and received at the same time, in as many parts as the sockets take, so that two
// ranks that send to each other never wait for each other.
#include "tests/runtime/collective/fake_nccl/exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "tests/runtime/collective/fake_nccl/device.h"

namespace fake_nccl {
namespace {

constexpr std::size_t kPart = std::size_t{64} << 10;
constexpr std::uint32_t kData = 0x44415441, kAcknowledgement = 0x41434b21;

struct Header {
  std::uint32_t kind = kData;
  std::uint32_t unused = 0;
  Label label;
};

// The frames that go to one peer: headers, with the block that follows each, if any.
struct Outgoing {
  Header header;
  const Block* block = nullptr;
  std::size_t sent = 0;  // counts the header and the block together
};

struct Incoming {
  const Block* block = nullptr;
  std::size_t received = 0;
};

// The blocks that are still to be sent to one peer and received from it.
class Line {
 public:
  Line(int fd, const Mischief& mischief)
      : fd_(fd), corrupt_(mischief.corrupt), in_parts_(mischief.die_in || mischief.slow_ms > 0) {}

  void add(const Block& block) {
    if (block.out) {
      out_.push_back({.header = {.label = block.label}, .block = &block});
      ++unacknowledged_;
    } else {
      in_.push_back({.block = &block});
    }
  }

  int fd() const { return fd_; }
  bool wants_to_read() const { return unacknowledged_ > 0 || !in_.empty(); }
  bool done() const { return out_.empty() && !wants_to_read(); }
  short events() const {
    return static_cast<short>((wants_to_read() ? POLLIN : 0) | (out_.empty() ? 0 : POLLOUT));
  }

  // Each moves as many bytes as the connection takes or has now; kDone: no error so far.
  Exchanged write_some() {
    while (!out_.empty()) {
      Outgoing& frame = out_.front();
      const std::size_t bytes = frame.block == nullptr ? 0 : frame.block->label.bytes;
      const bool in_header = frame.block == nullptr || frame.sent < sizeof(Header);
      const ssize_t sent =
          in_header ? send_bytes(reinterpret_cast<const char*>(&frame.header) + frame.sent,
                                 sizeof(Header) - frame.sent)
                    : send_part(*frame.block, frame.sent - sizeof(Header));
      if (sent < 0) return errno == EAGAIN ? Exchanged::kDone : Exchanged::kGone;
      frame.sent += static_cast<std::size_t>(sent);
      if (frame.block != nullptr) moved_ += static_cast<std::size_t>(sent);
      if (frame.sent == sizeof(Header) + bytes) out_.pop_front();
      if (in_parts_) break;
    }
    return Exchanged::kDone;
  }

  Exchanged read_some() {
    while (wants_to_read()) {
      const ssize_t got = receiving_ ? receive_part() : receive_header();
      if (got == 0) return Exchanged::kGone;
      if (got < 0) return errno == EAGAIN ? Exchanged::kDone : Exchanged::kGone;
      if (mismatched_) return Exchanged::kMismatched;
      if (in_parts_) break;
    }
    return Exchanged::kDone;
  }

  std::size_t moved() const { return moved_; }

 private:
  ssize_t send_bytes(const char* bytes, std::size_t count) const {
    return ::send(fd_, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  ssize_t send_part(const Block& block, std::size_t offset) {
    const std::size_t count = std::min(kPart, block.label.bytes - offset);
    read_device(static_cast<const char*>(block.memory) + offset, part_.get(), count);
    if (corrupt_ && offset == 0) part_[0] = static_cast<char>(~part_[0]);
    return send_bytes(part_.get(), count);
  }

  ssize_t receive_header() {
    auto* at = reinterpret_cast<char*>(&header_) + header_bytes_;
    const ssize_t got = ::recv(fd_, at, sizeof(Header) - header_bytes_, MSG_DONTWAIT);
    if (got <= 0) return got;
    header_bytes_ += static_cast<std::size_t>(got);
    if (header_bytes_ < sizeof(Header)) return got;
    header_bytes_ = 0;
    if (header_.kind == kAcknowledgement) {
      mismatched_ = unacknowledged_ == 0;
      --unacknowledged_;
    } else {
      mismatched_ = in_.empty() || !(in_.front().block->label == header_.label);
      receiving_ = true;
    }
    return got;
  }

  ssize_t receive_part() {
    Incoming& incoming = in_.front();
    const Block& block = *incoming.block;
    const std::size_t count = std::min(kPart, block.label.bytes - incoming.received);
    const ssize_t got = ::recv(fd_, part_.get(), count, MSG_DONTWAIT);
    if (got <= 0) return got;
    if (corrupt_ && incoming.received == 0) part_[0] = static_cast<char>(~part_[0]);
    write_device(static_cast<char*>(block.memory) + incoming.received, part_.get(),
                 static_cast<std::size_t>(got));
    incoming.received += static_cast<std::size_t>(got);
    moved_ += static_cast<std::size_t>(got);
    if (incoming.received < block.label.bytes) return got;
    in_.pop_front();
    receiving_ = false;
    out_.push_back({.header = {.kind = kAcknowledgement}});
    return got;
  }

  int fd_;
  bool corrupt_;
  bool in_parts_;  // no more than one at a time, so that the middle is not missed
  std::deque<Outgoing> out_;
  std::deque<Incoming> in_;
  int unacknowledged_ = 0;
  bool receiving_ = false;
  bool mismatched_ = false;
  Header header_;
  std::size_t header_bytes_ = 0;
  std::size_t moved_ = 0;
  std::unique_ptr<char[]> part_ = std::make_unique<char[]>(kPart);
};

std::size_t half_of(const std::vector<Block>& blocks) {
  std::size_t bytes = 0;
  for (const Block& block : blocks) bytes += block.label.bytes;
  return bytes / 2;
}

}  // namespace

Exchanged exchange(const std::vector<Block>& blocks, const std::vector<Fd>& peers,
                   const Mischief& mischief, int stop) {
  std::map<int, Line> lines;
  for (const Block& block : blocks)
    lines.try_emplace(block.peer, peers.at(static_cast<std::size_t>(block.peer)).get(), mischief)
        .first->second.add(block);
  bool slow = mischief.slow_ms > 0;
  for (;;) {
    std::vector<pollfd> all{{.fd = stop, .events = POLLIN, .revents = 0}};
    std::vector<Line*> polled;
    std::size_t moved = 0;
    for (auto& [peer, line] : lines) {
      moved += line.moved();
      if (line.done()) continue;
      polled.push_back(&line);
      all.push_back({.fd = line.fd(), .events = line.events(), .revents = 0});
    }
    if (moved >= half_of(blocks)) {
      if (mischief.die_in) die();
      if (slow && wait_until_ready(-1, 0, stop, mischief.slow_ms) == Ready::kStopped)
        return Exchanged::kStopped;
      slow = false;
    }
    if (polled.empty()) return Exchanged::kDone;
    if (::poll(all.data(), all.size(), -1) < 0) continue;
    if (all.front().revents != 0) return Exchanged::kStopped;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      const short ready = all[i + 1].revents;
      Exchanged state = Exchanged::kDone;
      if ((ready & POLLOUT) != 0) state = polled[i]->write_some();
      if (state == Exchanged::kDone && (ready & (POLLIN | POLLHUP | POLLERR)) != 0)
        state = polled[i]->read_some();
      if (state != Exchanged::kDone) return state;
    }
  }
}

}  // namespace fake_nccl
