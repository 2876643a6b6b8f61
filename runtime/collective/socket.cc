#include "runtime/collective/socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/collective/connection.h"
#include "runtime/collective/socket_hub.h"
#include "runtime/collective/socket_spoke.h"

namespace tandem::runtime {
namespace {

constexpr std::size_t kCandidatesMax = 2 * kRanksMax;  // connected, but not yet seated

// The ranks that have come so far, and those who have connected but not yet said who they are.
class Rendezvous {
 public:
  Rendezvous(int listener, const GangSpec& spec)
      : listener_(listener),
        expected_(hello_of(0, spec.size, spec.token)),
        seats_(static_cast<std::size_t>(spec.size) - 1) {}

  // All seats, by rank - 1.
  Result<std::vector<OwnedFd>> gather(Time deadline);

 private:
  struct Candidate {
    OwnedFd fd;
    Hello hello;
    std::size_t received = 0;
  };

  std::string missing() const;
  void poll_once(Time deadline);
  void accept_candidates();
  bool listen_to(Candidate& candidate);  // false: done with it
  void seat(Candidate& candidate);

  const int listener_;
  const Hello expected_;
  std::vector<Candidate> candidates_;
  std::vector<OwnedFd> seats_;
};

std::string Rendezvous::missing() const {
  std::string ranks;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (!seats_[i]) ranks += (ranks.empty() ? "rank " : ", rank ") + std::to_string(i + 1);
  }
  return ranks;
}

Result<std::vector<OwnedFd>> Rendezvous::gather(Time deadline) {
  for (bool late = false; !missing().empty();) {
    if (late) {
      const Error error{.code = ErrorCode::kTimedOut,
                        .message = "timed out waiting for " + missing() + " to join the gang",
                        .where = {},
                        .help = {}};
      for (const OwnedFd& seat : seats_) {
        if (seat) send_abort(seat.get(), error);
      }
      return error;
    }
    late = steady_now() >= deadline;  // then it looks once more: this process may have slept
    poll_once(deadline);
  }
  FrameHeader welcome;
  welcome.magic = kFrameMagic;
  welcome.kind = FrameKind::kWelcome;
  for (const OwnedFd& seat : seats_) {
    std::span<const std::byte> bytes = bytes_of(std::as_const(welcome));
    send_some(seat.get(),
              bytes);  // an empty socket takes it; one that is gone shows in the first call
  }
  return std::move(seats_);
}

void Rendezvous::poll_once(Time deadline) {
  std::vector<pollfd> set = {{.fd = listener_, .events = POLLIN, .revents = 0}};
  for (const OwnedFd& seat : seats_) {  // -1, an empty seat, is ignored by poll
    set.push_back({.fd = seat.get(), .events = POLLRDHUP, .revents = 0});
  }
  for (const Candidate& candidate : candidates_) {
    set.push_back({.fd = candidate.fd.get(), .events = POLLIN, .revents = 0});
  }
  CHECK(::poll(set.data(), set.size(), poll_timeout_ms(deadline)) >= 0 || errno == EINTR);
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i] && set[1 + i].revents != 0) seats_[i] = OwnedFd();  // died; may come again
  }
  std::erase_if(candidates_, [this](Candidate& candidate) { return !listen_to(candidate); });
  if (set[0].revents != 0) accept_candidates();
}

void Rendezvous::accept_candidates() {
  for (;;) {
    OwnedFd fd(::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return;
    prepare_stream(fd.get());
    Candidate candidate{.fd = std::move(fd), .hello = {}};
    if (!listen_to(candidate)) continue;
    if (candidates_.size() >= kCandidatesMax) candidates_.erase(candidates_.begin());
    candidates_.push_back(std::move(candidate));
  }
}

bool Rendezvous::listen_to(Candidate& candidate) {
  std::span<std::byte> rest =
      std::as_writable_bytes(std::span(&candidate.hello, 1)).subspan(candidate.received);
  const Transfer step = receive_some(candidate.fd.get(), rest);
  candidate.received = sizeof(Hello) - rest.size();
  if (step == Transfer::kDone) seat(candidate);
  return step == Transfer::kWouldBlock;
}

void Rendezvous::seat(Candidate& candidate) {
  const Hello& hello = candidate.hello;
  const auto refuse = [&](ErrorCode code, std::string why) {
    send_abort(
        candidate.fd.get(),
        {.code = code, .message = "rank 0 refuses: " + std::move(why), .where = {}, .help = {}});
  };
  if (hello.magic != expected_.magic ||
      std::memcmp(hello.token_digest, expected_.token_digest, sizeof hello.token_digest) != 0) {
    return refuse(ErrorCode::kUnauthorised, "the token is not this gang's");
  }
  if (hello.size != expected_.size || hello.rank == 0 || hello.rank >= hello.size) {
    return refuse(ErrorCode::kInvalid, "rank " + std::to_string(hello.rank) + " of " +
                                           std::to_string(hello.size) + " does not fit a gang of " +
                                           std::to_string(expected_.size));
  }
  OwnedFd& place = seats_[hello.rank - 1];
  if (place) return refuse(ErrorCode::kInvalid, "rank " + std::to_string(hello.rank) + " is here");
  place = std::move(candidate.fd);
}

}  // namespace

Result<GangListener> GangListener::listen(const std::string& host) {
  std::string address;
  Result<OwnedFd> fd = listen_tcp(host, &address);
  if (!fd) return fd.error();
  return GangListener(std::move(*fd), std::move(address));
}

Result<std::unique_ptr<Collective>> GangListener::accept(const GangSpec& spec,
                                                         Duration timeout) && {
  CHECK(spec.size >= 1 && spec.size <= kRanksMax);
  if (spec.size == 1) return std::move(make_local_collectives(1, spec.add)[0]);
  Result<std::vector<OwnedFd>> seats = Rendezvous(fd_.get(), spec).gather(steady_now() + timeout);
  if (!seats) return seats.error();
  return std::unique_ptr<Collective>(std::make_unique<SocketHub>(std::move(*seats), spec.add));
}

Result<std::unique_ptr<Collective>> dial_gang(const std::string& address, int rank,
                                              const GangSpec& spec, Duration timeout) {
  CHECK(rank >= 1 && rank < spec.size && spec.size <= kRanksMax);
  const Time deadline = steady_now() + timeout;
  Result<OwnedFd> fd = dial_tcp(address, deadline);
  if (!fd) return fd.error();
  const Hello hello = hello_of(rank, spec.size, spec.token);
  std::span<const std::byte> said = std::as_bytes(std::span(&hello, 1));
  send_some(fd->get(), said);  // an empty socket takes it
  FrameHeader answer;
  const Transfer heard = receive_all(fd->get(), bytes_of(answer), deadline + kAbortGrace);
  if (heard == Transfer::kDone && plausible(answer)) {
    if (answer.kind == FrameKind::kAbort) {
      return receive_abort(fd->get(), answer, deadline + kAbortGrace);
    }
    if (answer.kind == FrameKind::kWelcome) {
      return std::unique_ptr<Collective>(
          std::make_unique<SocketSpoke>(std::move(*fd), rank, spec.size));
    }
  }
  const bool late = heard == Transfer::kWouldBlock;
  return Error{.code = late ? ErrorCode::kTimedOut : ErrorCode::kUnreachable,
               .message = late ? "timed out waiting for rank 0 to gather the gang"
                               : "rank 0 hung up before the gang was complete",
               .where = address,
               .help = {}};
}

}  // namespace tandem::runtime
