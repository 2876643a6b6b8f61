#include "tests/runtime/weights/store_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>

namespace tandem::weights {
namespace {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string text(const std::string& value) {
  return raw(static_cast<std::uint64_t>(value.size())) + value;
}
std::string texts(const std::vector<std::string>& keys) {
  std::string all = raw(static_cast<std::uint64_t>(keys.size()));
  for (const std::string& key : keys) all += text(key);
  return all;
}
template <class T>
T value_of(const std::string& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

StoreClient::StoreClient(const std::string& host, std::uint16_t port)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &to.sin_addr);
  deadline(10'000);
  if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return;
  const std::uint32_t nonce = 4711;
  if (!send('\0' + raw(std::uint32_t{0x3C85F7CE})) || !send('\x0d' + raw(nonce))) return;
  const auto echo = receive(sizeof nonce);
  greeted_ = echo && value_of<std::uint32_t>(*echo) == nonce;
}

void StoreClient::deadline(int milliseconds) {
  const timeval after{.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &after, sizeof after);
}

bool StoreClient::send(const std::string& bytes) {
  return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
}

std::optional<std::string> StoreClient::receive(std::size_t bytes) {
  std::string heard(bytes, '\0');
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t got = ::recv(fd_.get(), heard.data() + at, bytes - at, 0);
    if (got <= 0) return {};
    at += static_cast<std::size_t>(got);
  }
  return heard;
}

std::optional<std::int64_t> StoreClient::add(const std::string& key, std::int64_t more) {
  if (!send('\4' + text(key) + raw(more))) return {};
  const auto sum = receive(8);
  return sum ? std::optional(value_of<std::int64_t>(*sum)) : std::nullopt;
}

std::optional<std::string> StoreClient::get(const std::string& key) {
  if (!send('\3' + text(key))) return {};
  const auto size = receive(8);
  return size ? receive(value_of<std::uint64_t>(*size)) : std::nullopt;
}

bool StoreClient::set(const std::string& key, const std::string& value) {
  return send('\1' + text(key) + text(value));
}

std::optional<bool> StoreClient::check(const std::vector<std::string>& keys) {
  if (!send('\5' + texts(keys))) return {};
  const auto answer = receive(1);
  return answer ? std::optional(answer->front() == '\0') : std::nullopt;
}

bool StoreClient::wait(const std::vector<std::string>& keys) {
  return send('\6' + texts(keys)) && receive(1) == std::string(1, '\0');
}

}  // namespace tandem::weights
