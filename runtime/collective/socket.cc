// How a socket gang comes together. Rank 0 polls its listener, the dialled connections that have
// not yet proved who they are (candidates), and the ranks that have (seats), until every seat is
// taken; then it welcomes them all at once. A rank dials, answers the challenge, and waits for the
// welcome.
//
// Any process of the network may dial, so a candidate can do no harm: their number is bounded, none
// of them is waited for alone, and one that fails leaves the seats as they are. A rank that ends
// before the gang is complete frees its seat.
#include "runtime/collective/socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "runtime/base/secret.h"
#include "runtime/collective/connection.h"
#include "runtime/collective/socket_hub.h"
#include "runtime/collective/socket_spoke.h"

namespace tandem::collective {
namespace {

// After the deadline a rank that is connected still has this time to say who it is.
constexpr Duration kHelloGrace = kAbortGrace / 2;
constexpr std::size_t kCandidatesMax = 2 * kRanksMax;  // one more drops the oldest candidate

// Rank 0's side of the gathering. One thread.
class Rendezvous {
 public:
  Rendezvous(int listener, const GangSpec& spec)
      : listener_(listener),
        spec_(spec),
        secret_(meeting_secret(spec)),
        seats_(static_cast<std::size_t>(spec.size) - 1) {}

  // The connections of all seats, by rank - 1.
  Result<std::vector<Stream>> gather(Time deadline);

 private:
  struct Candidate {
    Stream stream;  // empty: a seat that nobody has
    Challenge challenge;
    Hello hello;
    std::size_t received = 0;  // bytes of the hello
  };

  std::string missing() const;
  void poll_once(Time deadline);
  void accept_candidates();
  bool listen_to(Candidate& candidate);  // false: done with it
  void seat(Candidate& candidate);

  const int listener_;
  const GangSpec& spec_;
  const std::string secret_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> seats_;
};

std::string Rendezvous::missing() const {
  std::string ranks;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (!seats_[i].stream) ranks += (ranks.empty() ? "rank " : ", rank ") + std::to_string(i + 1);
  }
  return ranks;
}

// CO-2: this process may itself have been stopped until the deadline, so it looks once more, and
// gives ranks that are connected the time that the way there and back takes.
Result<std::vector<Stream>> Rendezvous::gather(Time deadline) {
  while (!missing().empty()) {
    const bool late = steady_now() >= deadline;
    const Time end = candidates_.empty() ? deadline : deadline + kHelloGrace;
    poll_once(end);
    const bool nobody_speaks = candidates_.empty() || steady_now() >= deadline + kHelloGrace;
    if (!late || !nobody_speaks || missing().empty()) continue;
    const Error error{.code = ErrorCode::kTimedOut,
                      .message = "timed out waiting for " + missing() + " to join the gang",
                      .where = {},
                      .help = {}};
    for (Candidate& seat : seats_) {
      if (seat.stream) send_abort(seat.stream, error);
    }
    return error;
  }
  FrameHeader welcome;
  welcome.magic = kFrameMagic;
  welcome.kind = FrameKind::kWelcome;
  welcome.bytes = kProofBytes;
  std::vector<Stream> connections;
  for (Candidate& seat : seats_) {
    // The send buffer is empty, so both fit; a rank that has ended shows in the first call.
    std::span<const std::byte> header = bytes_of(std::as_const(welcome));
    const std::string knows = welcome_proof(secret_, seat.hello, seat.challenge);
    std::span<const std::byte> proof = std::as_bytes(std::span(knows));
    seat.stream.send_some(header);
    seat.stream.send_some(proof);
    seal(seat.stream, /*leads=*/true, spec_, seat.hello, seat.challenge);
    connections.push_back(std::move(seat.stream));
  }
  return connections;
}

void Rendezvous::poll_once(Time deadline) {
  std::vector<pollfd> set = {{.fd = listener_, .events = POLLIN, .revents = 0}};
  for (const Candidate& seat : seats_) {  // -1, an empty seat, is ignored by poll
    set.push_back({.fd = seat.stream.fd(), .events = POLLRDHUP, .revents = 0});
  }
  for (const Candidate& candidate : candidates_) {
    set.push_back({.fd = candidate.stream.fd(), .events = POLLIN, .revents = 0});
  }
  CHECK(::poll(set.data(), set.size(), poll_timeout_ms(deadline)) >= 0 || errno == EINTR);
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].stream && set[1 + i].revents != 0) seats_[i] = {};  // ended; another may come
  }
  std::erase_if(candidates_, [this](Candidate& candidate) { return !listen_to(candidate); });
  if (set[0].revents != 0) accept_candidates();
}

void Rendezvous::accept_candidates() {
  // Bounded, so that a flood of connections does not keep the candidates from being heard.
  for (std::size_t accepted = 0; accepted < kCandidatesMax; ++accepted) {
    OwnedFd fd(::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return;
    prepare_stream(fd.get());
    Candidate candidate{
        .stream = Stream(std::move(fd)), .challenge = make_challenge(), .hello = {}};
    std::span<const std::byte> asked = std::as_bytes(std::span(&candidate.challenge, 1));
    candidate.stream.send_some(asked);  // an empty socket takes it
    // Usually there is no hello yet. A connection that has ended already is dropped here.
    if (!listen_to(candidate)) continue;
    if (candidates_.size() >= kCandidatesMax) candidates_.erase(candidates_.begin());
    candidates_.push_back(std::move(candidate));
  }
}

bool Rendezvous::listen_to(Candidate& candidate) {
  std::span<std::byte> rest =
      std::as_writable_bytes(std::span(&candidate.hello, 1)).subspan(candidate.received);
  const Transfer step = candidate.stream.receive_some(rest);
  candidate.received = sizeof(Hello) - rest.size();
  if (step == Transfer::kDone) seat(candidate);
  return step == Transfer::kWouldBlock;
}

void Rendezvous::seat(Candidate& candidate) {
  const Hello& hello = candidate.hello;
  const auto refuse = [&](ErrorCode code, std::string why) {
    send_abort(
        candidate.stream,
        {.code = code, .message = "rank 0 refuses: " + std::move(why), .where = {}, .help = {}});
  };
  // The secret is checked first: a stranger learns nothing about size and ranks of the gang.
  if (hello.magic != kFrameMagic || !proves(hello, secret_, candidate.challenge)) {
    return refuse(ErrorCode::kUnauthorised, "the secret is not this gang's");
  }
  if (hello.size != static_cast<std::uint32_t>(spec_.size) || hello.rank == 0 ||
      hello.rank >= hello.size) {
    return refuse(ErrorCode::kInvalid, "rank " + std::to_string(hello.rank) + " of " +
                                           std::to_string(hello.size) + " does not fit a gang of " +
                                           std::to_string(spec_.size));
  }
  Candidate& place = seats_[hello.rank - 1];
  if (place.stream)
    return refuse(ErrorCode::kInvalid, "rank " + std::to_string(hello.rank) + " is here");
  place = std::move(candidate);
}

}  // namespace

Result<GangListener> GangListener::listen(const link::Endpoint& at, const link::PortRange& ports) {
  link::Endpoint bound;
  Result<OwnedFd> fd = listen_stream(at, ports, &bound);
  if (!fd) return fd.error();
  return GangListener(std::move(*fd), std::move(bound));
}

Result<std::unique_ptr<Collective>> GangListener::accept(const GangSpec& spec,
                                                         Duration timeout) && {
  CHECK(spec.size >= 1 && spec.size <= kRanksMax);
  if (spec.size == 1) return std::move(make_local_collectives(1, spec.add)[0]);
  Result<std::vector<Stream>> seats = Rendezvous(fd_.get(), spec).gather(steady_now() + timeout);
  if (!seats) return seats.error();
  return std::unique_ptr<Collective>(std::make_unique<SocketHub>(std::move(*seats), spec));
}

Result<std::unique_ptr<Collective>> dial_gang(const link::Endpoint& to, int rank,
                                              const GangSpec& spec, Duration timeout) {
  CHECK(rank >= 1 && rank < spec.size && spec.size <= kRanksMax);
  const Time deadline = steady_now() + timeout;
  Result<OwnedFd> fd = dial_stream(to, deadline);
  if (!fd) return fd.error();
  Stream stream(*std::move(fd));
  const std::string secret = meeting_secret(spec);
  const auto hear = [&](std::span<std::byte> bytes) {
    // The grace lets rank 0's own error, which names the missing ranks, come first.
    return stream.receive_all(bytes, deadline + kAbortGrace);
  };
  const auto failed = [&](ErrorCode code, const char* why) {
    return Error{.code = code, .message = why, .where = to_string(to), .help = {}};
  };
  Challenge challenge;
  Transfer heard = hear(std::as_writable_bytes(std::span(&challenge, 1)));
  // The hello is made even if no challenge came; it is then not sent.
  const Hello hello = hello_of(rank, spec.size, secret, challenge);
  FrameHeader answer;
  if (heard == Transfer::kDone && challenge.magic == kFrameMagic) {
    std::span<const std::byte> said = std::as_bytes(std::span(&hello, 1));
    stream.send_some(said);  // an empty socket takes it
    heard = hear(bytes_of(answer));
  }
  if (heard == Transfer::kDone && plausible(answer) && answer.kind == FrameKind::kAbort) {
    return receive_abort(stream, answer, deadline + kAbortGrace);
  }
  if (heard == Transfer::kWouldBlock) {
    return failed(ErrorCode::kTimedOut, "timed out waiting for rank 0 to gather the gang");
  }
  std::string proof(kProofBytes, ' ');
  if (heard == Transfer::kDone) heard = hear(std::as_writable_bytes(std::span(proof)));
  if (heard != Transfer::kDone) {
    return failed(ErrorCode::kUnreachable, "rank 0 hung up before the gang was complete");
  }
  if (answer.kind != FrameKind::kWelcome ||
      !same_secret(proof, welcome_proof(secret, hello, challenge))) {
    return failed(ErrorCode::kUnauthorised, "who answers there does not know this gang's secret");
  }
  seal(stream, /*leads=*/false, spec, hello, challenge);
  return std::unique_ptr<Collective>(std::make_unique<SocketSpoke>(std::move(stream), rank, spec));
}

}  // namespace tandem::collective
