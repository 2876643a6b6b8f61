// Sockets, frames and the handshake of the socket collective.
//
// No call here waits except in poll(), which has a deadline, and in the look-up of a host's name:
// the sockets are non-blocking from the start, a connect() included. A peer that closes its end
// must not raise SIGPIPE, hence MSG_NOSIGNAL. Bytes of a peer are bounded before they are used:
// plausible() limits the payload, an abort's text has kAbortTextBytesMax, an error code is cut to
// the known ones.
#include "runtime/collective/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/secret.h"
#include "runtime/base/text.h"

namespace tandem::collective {
namespace {

Error socket_error(std::string_view action, const link::Endpoint& at) {
  Error error = file_error(action, to_string(at));
  error.code = ErrorCode::kUnreachable;
  return error;
}

// An address of either family, as the calls of the operating system take it.
struct SocketName {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family() const { return storage.ss_family; }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  std::uint16_t port() {
    return ntohs(family() == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(get())->sin6_port
                                      : reinterpret_cast<sockaddr_in*>(get())->sin_port);
  }
};

Result<SocketName> look_up(const link::Endpoint& at) {
  SocketName name;
  if (at.is_local()) {
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    CHECK(at.path.size() <= link::kSocketPathMax);
    std::memcpy(local.sun_path, at.path.c_str(), at.path.size() + 1);
    std::memcpy(&name.storage, &local, sizeof local);
    name.length = sizeof local;
    return name;
  }
  addrinfo hints{};
  hints.ai_family = link::is_ipv6(at.host) ? AF_INET6 : AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto ask = [&] {
    return ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  };
  int failure = ask();
  if (failure != 0 && hints.ai_family == AF_INET) {  // a name that has addresses of IPv6 alone
    hints.ai_family = AF_INET6;
    if (ask() == 0) failure = 0;
  }
  if (failure != 0) {
    return Error{.code = ErrorCode::kUnreachable,
                 .message = "cannot look up the address: " + std::string(::gai_strerror(failure)),
                 .where = to_string(at),
                 .help = {}};
  }
  std::memcpy(&name.storage, found->ai_addr, found->ai_addrlen);
  name.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return name;
}

OwnedFd make_socket(int family) {
  return OwnedFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// A proof covers the speaker's role, the rank and size that it claims, and both nonces. The role
// keeps a proof of one side from being sent back as that of the other.
std::string proof_of(std::string_view secret, const char* speaker, const Hello& hello,
                     const Challenge& challenge) {
  std::string text = std::string(speaker) + " " + std::to_string(hello.rank) + " of " +
                     std::to_string(hello.size) + " ";
  text.append(challenge.nonce, kNonceBytes).append(hello.nonce, kNonceBytes);
  std::string proof = hmac_hex(secret, text);
  CHECK(proof.size() == kProofBytes);
  return proof;
}

void fill_nonce(char (&nonce)[kNonceBytes]) {
  const std::string fresh = random_secret();
  CHECK(fresh.size() == kNonceBytes);
  std::memcpy(nonce, fresh.data(), kNonceBytes);
}

}  // namespace

Result<OwnedFd> listen_stream(const link::Endpoint& at, const link::PortRange& ports,
                              link::Endpoint* bound) {
  OwnedFd fd;
  const auto listen = [&fd](link::Endpoint place) -> Result<link::Endpoint> {
    Result<SocketName> name = look_up(place);
    if (!name) return name.error();
    fd = make_socket(name->family());
    if (!fd) return socket_error("make a socket", place);
    // A port of a range may have been a gang's just before.
    const int one = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (::bind(fd.get(), name->get(), name->length) != 0 || ::listen(fd.get(), SOMAXCONN) != 0 ||
        ::getsockname(fd.get(), name->get(), &name->length) != 0)
      return socket_error("listen", place);
    if (!place.is_local()) place.port = name->port();
    return place;
  };
  auto listening = link::listen_within(ports, at, listen);
  if (!listening) return listening.error();
  *bound = *std::move(listening);
  return fd;
}

Result<OwnedFd> dial_stream(const link::Endpoint& to, Time deadline) {
  Result<SocketName> name = look_up(to);
  if (!name) return name.error();
  OwnedFd fd = make_socket(name->family());
  if (!fd) return socket_error("make a socket", to);
  if (::connect(fd.get(), name->get(), name->length) != 0) {
    // A connection over TCP is made in the background; the socket becomes writable when it is
    // decided.
    if (errno != EINPROGRESS) return socket_error("connect", to);
    pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    while (::poll(&ready, 1, poll_timeout_ms(deadline)) < 0 && errno == EINTR) {
    }
    int failure = ready.revents == 0 ? ETIMEDOUT : 0;
    socklen_t length = sizeof failure;
    if (failure == 0) ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &length);
    errno = failure;
    if (failure != 0) return socket_error("connect", to);
  }
  prepare_stream(fd.get());
  return fd;
}

void prepare_stream(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);  // fails on a Unix socket
}

Challenge make_challenge() {
  Challenge challenge;
  fill_nonce(challenge.nonce);
  return challenge;
}

Hello hello_of(int rank, int size, std::string_view secret, const Challenge& challenge) {
  Hello hello;
  hello.rank = static_cast<std::uint32_t>(rank);
  hello.size = static_cast<std::uint32_t>(size);
  fill_nonce(hello.nonce);
  std::memcpy(hello.proof, proof_of(secret, "rank", hello, challenge).data(), kProofBytes);
  return hello;
}

bool proves(const Hello& hello, std::string_view secret, const Challenge& challenge) {
  return same_secret(std::string_view(hello.proof, kProofBytes),
                     proof_of(secret, "rank", hello, challenge));
}

std::string welcome_proof(std::string_view secret, const Hello& hello, const Challenge& challenge) {
  return proof_of(secret, "rank 0 to", hello, challenge);
}

std::string meeting_secret(const GangSpec& spec) {
  return spec.privacy == Privacy::kSealed ? spec.secret : spec.secret + " plain";
}

void seal(Stream& stream, bool leads, const GangSpec& spec, const Hello& hello,
          const Challenge& challenge) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool known = ::getsockname(stream.fd(), reinterpret_cast<sockaddr*>(&own), &length) == 0;
  CHECK(known);
  // Nobody but this user can open a Unix socket.
  if (spec.privacy == Privacy::kPlain || own.ss_family == AF_UNIX) return;
  const std::string nonces =
      std::string(challenge.nonce, kNonceBytes).append(hello.nonce, kNonceBytes);
  StreamKeys keys{.sending = seal_key(spec.secret, "from rank 0 " + nonces),
                  .receiving = seal_key(spec.secret, "to rank 0 " + nonces)};
  if (!leads) std::swap(keys.sending, keys.receiving);
  stream.seal(keys);
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

Heartbeat make_heartbeat(std::uint64_t counter, std::string_view phase) {
  Heartbeat heartbeat{.counter = counter};
  phase.copy(heartbeat.phase, sizeof heartbeat.phase - 1);
  return heartbeat;
}

std::string_view phase_of(const Heartbeat& heartbeat) {
  return {heartbeat.phase, ::strnlen(heartbeat.phase, sizeof heartbeat.phase)};
}

std::string frame_of(const Heartbeat& heartbeat) {
  FrameHeader header;
  header.magic = kFrameMagic;
  header.kind = FrameKind::kHeartbeat;
  header.bytes = sizeof heartbeat;
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  return frame.append(reinterpret_cast<const char*>(&heartbeat), sizeof heartbeat);
}

void send_abort(Stream& stream, const Error& error) {
  const std::string text =
      cut_utf8(error.message, kAbortTextBytesMax - std::string_view("…").size());
  FrameHeader header;
  header.magic = kFrameMagic;
  header.kind = FrameKind::kAbort;
  header.bytes = static_cast<std::uint32_t>(text.size());
  header.error_code = static_cast<std::uint32_t>(error.code);
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  frame += text;
  std::span<const std::byte> bytes = std::as_bytes(std::span(frame));
  // The frame is sent without waiting: the peer may not read any more, and this rank has its own
  // error to return.
  stream.send_some(bytes);
  ::shutdown(stream.fd(), SHUT_WR);
}

bool plausible(const FrameHeader& header) {
  if (header.magic != kFrameMagic) return false;
  if (header.kind == FrameKind::kHeartbeat) return header.bytes == sizeof(Heartbeat);
  const bool abort = header.kind == FrameKind::kAbort;
  return header.bytes <= (abort ? kAbortTextBytesMax : kFrameBytesMax);
}

Error no_frame_of_ours(int rank) {
  return {.message = "rank " + std::to_string(rank) + " sends what is no frame of ours",
          .where = {},
          .help = {}};
}

Error receive_abort(Stream& stream, const FrameHeader& header, Time deadline) {
  std::string text(header.bytes, '\0');
  const Transfer read = stream.receive_all(std::as_writable_bytes(std::span(text)), deadline);
  if (read != Transfer::kDone) text = "rank 0 gave up";
  constexpr auto kLast = static_cast<std::uint32_t>(ErrorCode::kUnreachable);
  // The number is the peer's word: one beyond the enumeration must not become an ErrorCode.
  const auto code = static_cast<ErrorCode>(std::min(header.error_code, kLast));
  return {.code = code, .message = std::move(text), .where = {}, .help = {}};
}

}  // namespace tandem::collective
