// The process that made the unique id listens at a name that the id holds. Ranks connect there, say
// who they are and where they listen, and wait; when the last one has come all are let go, or all
// hear why not.
#include "tests/runtime/collective/fake_nccl/meeting.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>

namespace fake_nccl {
namespace {

struct Verdict {
  Met met = Met::kYes;
  int other = -1;  // with the same device, if they may not share one
};

struct Address {
  sockaddr_un data{};
  socklen_t size = 0;
};

Address address_of(const std::string& name) {
  Address address;
  address.data.sun_family = AF_UNIX;
  std::memcpy(address.data.sun_path + 1, name.data(), name.size());  // after a zero: abstract
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Fd new_socket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

std::optional<Fd> listen_at(const std::string& name) {
  Fd fd = new_socket();
  const Address address = address_of(name);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.data), address.size) != 0 ||
      ::listen(fd.get(), 64) != 0)
    return std::nullopt;
  return fd;
}

std::optional<Fd> connect_to(const std::string& name) {
  Fd fd = new_socket();
  const Address address = address_of(name);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.data), address.size) != 0)
    return std::nullopt;
  return fd;
}

template <class T>
bool say(int fd, const T& value) {
  return ::send(fd, &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value);
}

template <class T>
Met hear(int fd, T& value, int stop) {
  auto* at = reinterpret_cast<char*>(&value);
  for (std::size_t got = 0; got < sizeof value;) {
    if (wait_until_ready(fd, POLLIN, stop) != Ready::kYes) return Met::kStopped;
    const ssize_t more = ::recv(fd, at + got, sizeof value - got, 0);
    if (more <= 0) return Met::kGone;
    got += static_cast<std::size_t>(more);
  }
  return Met::kYes;
}

struct Guest {
  Fd fd;
  Presence presence;
};

// The verdict on one of the ranks that came.
Verdict judge(const Guest& guest, const std::vector<Guest>& all) {
  for (const Guest& other : all) {
    if (other.fd.get() == guest.fd.get()) continue;
    if (other.presence.size != guest.presence.size || other.presence.rank == guest.presence.rank)
      return {.met = Met::kDisagreed, .other = other.presence.rank};
    if (std::strcmp(other.presence.device, guest.presence.device) == 0)
      return {.met = Met::kSameDevice, .other = other.presence.rank};
  }
  return {};
}

bool hung_up(const Fd& fd) {
  pollfd look{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) == 1;  // a guest says nothing more
}

void keep_place(const Fd& door) {
  std::vector<Guest> guests;
  for (;;) {
    std::vector<pollfd> all{{.fd = door.get(), .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests)
      all.push_back({.fd = guest.fd.get(), .events = POLLIN, .revents = 0});
    if (::poll(all.data(), all.size(), -1) < 0) continue;
    for (const Guest& guest : guests)
      if (hung_up(guest.fd)) return;  // all others are hung up on
    if (all.front().revents == 0) continue;
    Guest guest{.fd = Fd(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC)), .presence = {}};
    if (hear(guest.fd.get(), guest.presence, -1) != Met::kYes) continue;
    guests.push_back(std::move(guest));
    if (static_cast<int>(guests.size()) == guests.front().presence.size) break;
  }
  for (const Guest& guest : guests) say(guest.fd.get(), judge(guest, guests));
}

std::string name_of(const std::string& place, int rank) {
  return place + "." + std::to_string(rank);
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Ready wait_until_ready(int fd, short events, int stop, int timeout_ms) {
  for (;;) {
    std::array<pollfd, 2> both{
        {{.fd = fd, .events = events, .revents = 0}, {.fd = stop, .events = POLLIN, .revents = 0}}};
    const int ready = ::poll(both.data(), both.size(), timeout_ms);
    if (ready == 0) return Ready::kTimedOut;
    if (both[1].revents != 0) return Ready::kStopped;
    if (ready > 0 && both[0].revents != 0) return Ready::kYes;
  }
}

std::string open_place() {
  std::random_device random;
  const std::string name = "tandem-fake-nccl." + std::to_string(::getpid()) + "." +
                           std::to_string(random()) + std::to_string(random());
  auto door = listen_at(name);
  if (!door) return "";
  std::thread([door = std::make_shared<Fd>(std::move(*door))] { keep_place(*door); }).detach();
  return name;
}

Meeting meet(const std::string& place, const Presence& presence, bool devices_may_be_shared,
             int stop) {
  Meeting meeting;
  meeting.peers.resize(static_cast<std::size_t>(presence.size));
  const auto own = listen_at(name_of(place, presence.rank));
  const auto host = connect_to(place);
  if (!own || !host || !say(host->get(), presence)) return meeting;
  Verdict verdict;
  meeting.met = hear(host->get(), verdict, stop);
  if (meeting.met != Met::kYes) return meeting;
  meeting.met = verdict.met == Met::kSameDevice && devices_may_be_shared ? Met::kYes : verdict.met;
  meeting.other = verdict.other;
  for (int peer = 0; peer < presence.rank && meeting.met == Met::kYes; ++peer) {
    auto fd = connect_to(name_of(place, peer));
    if (!fd || !say(fd->get(), presence.rank)) {
      meeting.met = Met::kGone;
    } else {
      meeting.peers[static_cast<std::size_t>(peer)] = std::move(*fd);
    }
  }
  for (int peer = presence.rank + 1; peer < presence.size && meeting.met == Met::kYes; ++peer) {
    if (wait_until_ready(own->get(), POLLIN, stop) != Ready::kYes) {
      meeting.met = Met::kStopped;
      break;
    }
    Fd fd(::accept4(own->get(), nullptr, nullptr, SOCK_CLOEXEC));
    int from = 0;
    meeting.met = hear(fd.get(), from, stop);
    if (meeting.met == Met::kYes) meeting.peers.at(static_cast<std::size_t>(from)) = std::move(fd);
  }
  return meeting;
}

}  // namespace fake_nccl
