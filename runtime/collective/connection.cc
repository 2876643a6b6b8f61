#include "runtime/collective/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"

namespace tandem::runtime {
namespace {

Error socket_error(std::string_view action, const std::string& address) {
  Error error = file_error(action, address);
  error.code = ErrorCode::kUnreachable;
  return error;
}

Result<sockaddr_in> look_up(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (failure != 0) {
    return Error{.code = ErrorCode::kUnreachable,
                 .message = "cannot look up the address: " + std::string(::gai_strerror(failure)),
                 .where = host + ":" + port,
                 .help = {}};
  }
  sockaddr_in address;
  std::memcpy(&address, found->ai_addr, sizeof address);
  ::freeaddrinfo(found);
  return address;
}

OwnedFd make_socket() {
  return OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

Result<OwnedFd> listen_tcp(const std::string& host, std::string* address) {
  const Result<sockaddr_in> found = look_up(host, "0");
  if (!found) return found.error();
  sockaddr_in name = *found;
  OwnedFd fd = make_socket();
  if (!fd) return socket_error("make a socket", host);
  socklen_t length = sizeof name;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return socket_error("listen", host);
  }
  *address = host + ":" + std::to_string(ntohs(name.sin_port));
  return fd;
}

Result<OwnedFd> dial_tcp(const std::string& address, Time deadline) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return Error{.code = ErrorCode::kInvalid,
                 .message = "not an address of the form host:port",
                 .where = address,
                 .help = {}};
  }
  const Result<sockaddr_in> name = look_up(address.substr(0, colon), address.substr(colon + 1));
  if (!name) return name.error();
  OwnedFd fd = make_socket();
  if (!fd) return socket_error("make a socket", address);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*name), sizeof *name) != 0) {
    if (errno != EINPROGRESS) return socket_error("connect", address);
    pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    while (::poll(&ready, 1, poll_timeout_ms(deadline)) < 0 && errno == EINTR) {
    }
    int failure = ready.revents == 0 ? ETIMEDOUT : 0;
    socklen_t length = sizeof failure;
    if (failure == 0) ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &length);
    errno = failure;
    if (failure != 0) return socket_error("connect", address);
  }
  prepare_stream(fd.get());
  return fd;
}

void prepare_stream(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int poll_timeout_ms(Time deadline) {
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(rest, 0, INT_MAX));
}

Hello hello_of(int rank, int size, std::string_view token) {
  Hello hello;
  hello.rank = static_cast<std::uint32_t>(rank);
  hello.size = static_cast<std::uint32_t>(size);
  const std::string digest = sha256_hex(std::as_bytes(std::span(token)));
  CHECK(digest.size() == sizeof hello.token_digest);
  std::memcpy(hello.token_digest, digest.data(), digest.size());
  return hello;
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

std::size_t frames_of(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kFrameBytesMax - 1) / kFrameBytesMax);
}

std::span<std::byte> bytes_of(FrameHeader& header) {
  return std::as_writable_bytes(std::span(&header, 1));
}

std::span<const std::byte> bytes_of(const FrameHeader& header) {
  return std::as_bytes(std::span(&header, 1));
}

void send_abort(int fd, const Error& error) {
  const std::size_t length = std::min(error.message.size(), kAbortTextBytesMax);
  FrameHeader header;
  header.magic = kFrameMagic;
  header.kind = FrameKind::kAbort;
  header.bytes = static_cast<std::uint32_t>(length);
  header.error_code = static_cast<std::uint32_t>(error.code);
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  frame.append(error.message, 0, length);
  std::span<const std::byte> bytes = std::as_bytes(std::span(frame));
  send_some(fd, bytes);
  ::shutdown(fd, SHUT_WR);
}

bool plausible(const FrameHeader& header) {
  if (header.magic != kFrameMagic) return false;
  const bool abort = header.kind == FrameKind::kAbort;
  return header.bytes <= (abort ? kAbortTextBytesMax : kFrameBytesMax);
}

Error receive_abort(int fd, const FrameHeader& header, Time deadline) {
  std::string text(header.bytes, '\0');
  const Transfer read = receive_all(fd, std::as_writable_bytes(std::span(text)), deadline);
  if (read != Transfer::kDone) text = "rank 0 gave up";
  constexpr auto kLast = static_cast<std::uint32_t>(ErrorCode::kUnreachable);
  const auto code = static_cast<ErrorCode>(std::min(header.error_code, kLast));
  return {.code = code, .message = std::move(text), .where = {}, .help = {}};
}

}  // namespace tandem::runtime
