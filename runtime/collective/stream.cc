// A record is sealed as soon as it is taken from the caller and is kept until the socket has it, so
// that bytes which were taken once are never sealed twice. A record is opened into the caller's own
// memory where that has room for all of it, which is so for the payloads of frames.
#include "runtime/collective/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "runtime/base/check.h"

namespace tandem::collective {
namespace {

using Length = std::uint32_t;  // in front of a record: its plain bytes, from 1
constexpr std::size_t kRecordBytesMax = std::size_t{64} << 10;

}  // namespace

int poll_timeout_ms(Time deadline) {
  // Rounded up: a wait that ends just before its deadline would go round once more for nothing.
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(rest, 0, INT_MAX));
}

Transfer send_some(int fd, std::span<const std::byte>& bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return Transfer::kWouldBlock;
    if (sent < 0) return Transfer::kClosed;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return Transfer::kDone;
}

Transfer receive_some(int fd, std::span<std::byte>& bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Transfer::kWouldBlock;
    if (got <= 0) return Transfer::kClosed;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return Transfer::kDone;
}

Transfer receive_all(int fd, std::span<std::byte> bytes, Time deadline) {
  for (;;) {
    const Transfer step = receive_some(fd, bytes);
    if (step != Transfer::kWouldBlock) return step;
    if (steady_now() >= deadline) return Transfer::kWouldBlock;
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    CHECK(::poll(&ready, 1, poll_timeout_ms(deadline)) >= 0 || errno == EINTR);
  }
}

void Stream::seal(const StreamKeys& keys) {
  sending_.emplace(keys.sending);
  sending_->record.resize(sizeof(Length) + kRecordBytesMax + kSealBytes);
  receiving_.emplace(keys.receiving);
  receiving_->record.resize(sizeof(Length) + kRecordBytesMax + kSealBytes);
}

Transfer Stream::send_some(std::span<const std::byte>& bytes) {
  return sending_ ? send_sealed(bytes) : collective::send_some(fd(), bytes);
}

Transfer Stream::send_sealed(std::span<const std::byte>& bytes) {
  Sending& s = *sending_;
  for (;;) {
    if (const Transfer step = collective::send_some(fd(), s.rest); step != Transfer::kDone)
      return step;
    if (bytes.empty()) return Transfer::kDone;
    const auto part = bytes.first(std::min(bytes.size(), kRecordBytesMax));
    const auto length = static_cast<Length>(part.size());
    const auto record = std::span(s.record).first(sizeof length + part.size() + kSealBytes);
    std::memcpy(record.data(), &length, sizeof length);
    s.sealer.seal(record.first(sizeof length), part, record.subspan(sizeof length));
    s.rest = record;
    bytes = bytes.subspan(part.size());
  }
}

Transfer Stream::receive_some(std::span<std::byte>& bytes) {
  if (!receiving_) return collective::receive_some(fd(), bytes);
  Receiving& r = *receiving_;
  while (!bytes.empty()) {
    if (!r.rest.empty()) {
      const std::size_t count = std::min(bytes.size(), r.rest.size());
      std::ranges::copy(r.rest.first(count), bytes.begin());
      r.rest = r.rest.subspan(count);
      bytes = bytes.subspan(count);
      continue;
    }
    if (const Transfer step = receive_record(); step != Transfer::kDone) return step;
    if (!open_record(bytes)) return Transfer::kClosed;
  }
  return Transfer::kDone;
}

// Receives the rest of the record: its length first.
Transfer Stream::receive_record() {
  Receiving& r = *receiving_;
  for (;;) {
    std::size_t whole = sizeof(Length);
    if (r.received >= whole) {
      Length length = 0;
      std::memcpy(&length, r.record.data(), sizeof length);
      if (length == 0 || length > kRecordBytesMax) return Transfer::kClosed;
      whole += length + kSealBytes;
      if (r.received == whole) return Transfer::kDone;
    }
    auto rest = std::span(r.record).subspan(r.received, whole - r.received);
    const std::size_t before = rest.size();
    const Transfer step = collective::receive_some(fd(), rest);
    r.received += before - rest.size();
    if (step != Transfer::kDone) return step;
  }
}

// Opens the record that has been received, and hands out the front of it. False: it is not the one
// that was sealed.
bool Stream::open_record(std::span<std::byte>& bytes) {
  Receiving& r = *receiving_;
  const std::span<const std::byte> record = std::span(r.record).first(r.received);
  const auto head = record.first(sizeof(Length)), sealed = record.subspan(sizeof(Length));
  const std::size_t count = sealed.size() - kSealBytes;
  if (count <= bytes.size()) {
    if (!r.opener.open(head, sealed, bytes.first(count))) return false;
    bytes = bytes.subspan(count);
  } else {
    r.plain.resize(count);
    if (!r.opener.open(head, sealed, r.plain)) return false;
    r.rest = r.plain;
  }
  r.received = 0;
  return true;
}

Transfer Stream::receive_all(std::span<std::byte> bytes, Time deadline) {
  for (;;) {
    const Transfer step = receive_some(bytes);
    if (step != Transfer::kWouldBlock) return step;
    if (steady_now() >= deadline) return Transfer::kWouldBlock;
    pollfd ready{.fd = fd(), .events = POLLIN, .revents = 0};
    CHECK(::poll(&ready, 1, poll_timeout_ms(deadline)) >= 0 || errno == EINTR);
  }
}

}  // namespace tandem::collective
