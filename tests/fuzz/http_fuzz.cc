// What a client sends to the HTTP server (a browser, a script, a stranger on the port), and what a
// server answers to us (a reward service, a proxy before the controller). The first byte chooses.
// Checked: no handler sees a body or a header beyond the limits, nor a target that is not UTF-8;
// the server answers in HTTP or not at all, and ends a connection whose client has ended; every
// answer of a server ends a call, as a response within its limit or as an error.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/text.h"
#include "runtime/http/http_client.h"
#include "runtime/http/http_server.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

using namespace http;

// Small, so that an input can pass them.
constexpr HttpLimits kLimits{.body_bytes_max = 256, .header_bytes_max = 512, .threads = 1};
constexpr std::size_t kResponseMax = 1024;
constexpr Duration kCallMax = std::chrono::seconds(5);
constexpr int kHangMs = 8000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // the other end had enough
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string receive_all(int fd) {
  std::string all;
  for (;;) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    int found = ::poll(&ready, 1, kHangMs);
    while (found < 0 && errno == EINTR) found = ::poll(&ready, 1, kHangMs);  // libFuzzer's timer
    CHECK(found == 1);
    char piece[4096];
    const ssize_t got = ::recv(fd, piece, sizeof(piece), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return all;
    all.append(piece, static_cast<std::size_t>(got));
  }
}

void check_target(const HttpRequest& request) {
  CHECK(valid_utf8(request.target) == request.target);
  for (const std::string& segment : request.segments)
    CHECK(!segment.empty() && valid_utf8(segment) == segment);
  for (const auto& [key, value] : request.query)
    CHECK(valid_utf8(key) == key && valid_utf8(value) == value);
}

HttpAnswer handle(const HttpRequest& request) {
  CHECK(request.body.size() <= kLimits.body_bytes_max);
  std::size_t header_bytes = 0;
  for (const auto& [name, value] : request.headers) header_bytes += name.size() + value.size();
  CHECK(header_bytes <= kLimits.header_bytes_max);
  // The first line has the limit for itself, and a byte that is not UTF-8 becomes three.
  CHECK(request.target.size() <= 3 * kLimits.header_bytes_max);
  check_target(request);
  return HttpResponse{.body = request.body};
}

void ask_server(std::string_view bytes) {
  static const auto server = *HttpServer::listen({.host = link::kLoopback}, kLimits, handle);
  const OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(server->endpoint().port);
  const int connected = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  CHECK(connected == 0);
  send_all(fd.get(), bytes);
  ::shutdown(fd.get(), SHUT_WR);
  const std::string answer = receive_all(fd.get());
  CHECK(answer.empty() || answer.starts_with("HTTP/1.1 "));
}

// Plays a server that answers with `bytes`, whatever it is asked.
struct Listener {
  Listener() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = loopback(0);
    CHECK(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0);
    CHECK(::listen(fd.get(), 8) == 0);
    socklen_t size = sizeof(at);
    CHECK(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port = ntohs(at.sin_port);
  }
  const OwnedFd fd;
  std::uint16_t port = 0;
};

void answer_client(std::string_view bytes) {
  static const Listener listener;
  static HttpRequests requests;
  std::promise<Result<HttpResponse>> done;
  requests.post({{.host = link::kLoopback, .port = listener.port}, "/score"}, "{}", kCallMax, {},
                kResponseMax,
                [&](Result<HttpResponse> answer) { done.set_value(std::move(answer)); });
  {
    int accepted = -1;
    while (accepted < 0) {
      accepted = ::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC);
      CHECK(accepted >= 0 || errno == EINTR);
    }
    const OwnedFd client(accepted);
    send_all(client.get(), bytes);
    ::shutdown(client.get(), SHUT_WR);
    (void)receive_all(client.get());
  }
  const auto answer = done.get_future().get();
  if (answer) {
    CHECK(answer->body.size() <= kResponseMax);
    CHECK(!error_of(*answer).message.empty());
  } else {
    CHECK(!answer.error().message.empty() && answer.error().code != ErrorCode::kTimedOut);
  }
}

void check_texts(std::string_view text) {
  HttpRequest request;
  if (split_target(text, request)) check_target(request);
  if (const auto url = parse_url(text)) CHECK(!url->server.host.empty());
  const Error error = error_of({.status = 400, .body = std::string(text)});
  CHECK(!error.message.empty());
  // The way there and back again keeps what an error says.
  CHECK(error_of(error_response(error)).code == error.code);
}

}  // namespace

void http(std::string_view input) {
  Pieces pieces(input);
  switch (pieces.byte() % 3) {
    case 0:
      return ask_server(pieces.rest());
    case 1:
      return answer_client(pieces.rest());
    case 2:
      return check_texts(pieces.rest());
  }
}

}  // namespace tandem::fuzz
