// A process is a System with a ProgramHost and a Directory (Peer). Its link is two lanes, one each
// way, to a star: the forwarder and the controller's ports. The end of a process is always a timer
// of the executor, since a System must not be destroyed while one of its actors runs.
#include "actors/program/simulated_job.h"

#include <algorithm>
#include <deque>

#include "actors/program/program_host.h"
#include "actors/rank/rank_session.h"

namespace tandem {

using link::Offer;
using link::Sent;
using messages::ProgramInbox;
using messages::RankEvents;
using program::ProgramHost;

namespace {

constexpr std::size_t kLaneFramesMax = 65'536;
// The pause before a frame that found no room is tried again.
constexpr Duration kRetryAfter = std::chrono::milliseconds(1);
constexpr std::int64_t kDrainMs = 60'000;

}  // namespace

// One direction of a link: frames arrive in order, each after a drawn delay.
class SimulatedJob::Lane : public std::enable_shared_from_this<Lane> {
 public:
  using Deliver = std::function<Offer(const std::string& frame)>;
  Lane(actor::SimulatedExecutor& executor, Deliver deliver)
      : executor_(executor), deliver_(std::move(deliver)) {}

  Sent send(std::string frame) {
    if (frames_.size() >= kLaneFramesMax) return Sent::kFull;
    const auto delay =
        Duration(executor_.rng().below(static_cast<std::uint64_t>(kDelayMax.count())));
    last_ = std::max(last_, executor_.now() + delay);
    frames_.push_back({last_, std::move(frame)});
    if (frames_.size() == 1) arm(last_);
    return Sent::kAccepted;
  }

 private:
  struct Frame {
    Time at;
    std::string bytes;
  };
  void arm(Time at) {
    executor_.at(at, [weak = weak_from_this()] {
      if (const auto lane = weak.lock()) lane->pump();
    });
  }
  void pump() {
    if (deliver_(frames_.front().bytes) == Offer::kLater) return arm(executor_.now() + kRetryAfter);
    frames_.pop_front();
    if (!frames_.empty()) arm(frames_.front().at);
  }

  actor::SimulatedExecutor& executor_;
  const Deliver deliver_;
  std::deque<Frame> frames_;
  Time last_;
};

// A process with its link, or the test, which has no actors.
struct SimulatedJob::Peer {
  ActorId id;
  bool ready = false;
  std::shared_ptr<Lane> up, down;  // to the star, and from it
  link::Directory directory;
  std::unique_ptr<actor::System> system;
};

struct SimulatedJob::Wanted {
  messages::StartActor start;
  std::optional<int> exit_status;
};

// The port of the controller to which ranks report.
class SimulatedJob::Controller final : public actor::Target<messages::RankEvents> {
 public:
  explicit Controller(SimulatedJob& job) : job_(job) {}
  Delivery post(messages::RankEvents event) override {
    if (const auto* ready = std::get_if<messages::RankReady>(&event)) {
      const auto peer = job_.peers_.find(ready->actor);
      if (peer != job_.peers_.end() && peer->second->id.incarnation == ready->incarnation)
        peer->second->ready = true;
    }
    if (const auto* failed = std::get_if<messages::RankFailed>(&event)) {
      job_.failures_.push_back(failed->actor + ": " + failed->message);
      job_.end({failed->actor, failed->incarnation}, 1);
    }
    return Delivery::kAccepted;
  }

 private:
  SimulatedJob& job_;
};

SimulatedJob::SimulatedJob(const Program& program, std::uint64_t seed, std::string name)
    : program_(program),
      name_(std::move(name)),
      executor_(seed),
      forwarder_(
          [this](const ActorId& to, std::string frame) { return to_peer(to)(std::move(frame)); }) {
  controller_.expose(
      rank::kControllerRanksPort,
      Ref<messages::RankEvents>({"controller", {1}}, std::make_shared<Controller>(*this)));
  test_ = connect({full_name("test/0"), {1}});
}

SimulatedJob::~SimulatedJob() = default;

std::shared_ptr<SimulatedJob::Peer> SimulatedJob::connect(const ActorId& id) {
  auto peer = std::make_shared<Peer>();
  peer->id = id;
  peer->up = std::make_shared<Lane>(
      executor_, [this, id](const std::string& frame) { return arrived(id, frame); });
  peer->down = std::make_shared<Lane>(
      executor_, [this, weak = std::weak_ptr(peer)](const std::string& frame) {
        const auto receiver = weak.lock();
        return receiver ? receiver->directory.deliver(frame, to_star(receiver)) : Offer::kTaken;
      });
  peers_[id.name] = peer;
  forwarder_.up(id);
  return peer;
}

link::ParcelSender SimulatedJob::to_star(const std::shared_ptr<Peer>& peer) {
  return [weak = std::weak_ptr(peer->up)](std::string frame) {
    const auto lane = weak.lock();
    return lane ? lane->send(std::move(frame)) : Sent::kGone;
  };
}

link::ParcelSender SimulatedJob::to_peer(const ActorId& peer) {
  return [this, peer](std::string frame) {
    const auto found = peers_.find(peer.name);
    if (found == peers_.end() || found->second->id != peer) return Sent::kGone;
    return found->second->down->send(std::move(frame));
  };
}

Offer SimulatedJob::arrived(const ActorId& from, const std::string& frame) {
  if (const auto forwarded = forwarder_.offer(from, frame)) return *forwarded;
  return controller_.deliver(frame, to_peer(from), from);
}

Peers SimulatedJob::peers_of_test() { return Peers(name_, test_->directory, to_star(test_)); }

Error SimulatedJob::late(const std::string& name) {
  return {ErrorCode::kTimedOut, "asked " + name + " and had no answer in time"};
}

SimulatedJob::Wanted& SimulatedJob::wanted(const std::string& actor) {
  const auto found = wanted_.find(full_name(actor));
  CHECK(found != wanted_.end());
  return *found->second;
}

void SimulatedJob::start(const std::string& actor, const nlohmann::json& args) {
  const std::string role = actor.substr(0, actor.find('/'));
  CHECK(program_.classes().contains(role));
  const std::string full = full_name(actor);
  auto wanted = std::make_unique<Wanted>();
  wanted->start = {.job = name_,
                   .actor = full,
                   .role = role,
                   .incarnation = {},
                   .replicas = 1,
                   .args_json = dump_json(args),
                   .run_dir = ""};
  wanted_[full] = std::move(wanted);
  spawn(full);
  const std::size_t failures = failures_.size();
  run_until([&] { return running(actor) || failures_.size() > failures; });
}

void SimulatedJob::spawn(const std::string& full_name) {
  messages::StartActor& start = wanted_.at(full_name)->start;
  ++start.incarnation.value;
  const ActorId id{full_name, start.incarnation};
  const auto peer = connect(id);
  peer->system =
      std::make_unique<actor::System>(executor_, [this, id](const ActorId&, const Error& why) {
        failures_.push_back(id.name + ": " + why.message);
        end(id, 1);
      });
  const auto host =
      peer->system->spawn<ProgramHost>("rank", [this, raw = peer.get(), id, out = to_star(peer)] {
        return std::make_unique<ProgramHost>(ProgramHost::Process{
            .system = *raw->system,
            .directory = raw->directory,
            .out = out,
            .classes = program_.classes(),
            .controller =
                raw->directory.remote<messages::RankEvents>({rank::kControllerRanksPort, {}}, out),
            .end = [this, id](int status) { end(id, status); }});
      });
  peer->directory.expose(rank::kRankInboxPort, host);
  const auto rank =
      controller_.remote<messages::ProgramInbox>({rank::kRankInboxPort, {}}, to_peer(id));
  CHECK(rank.tell(start) == Delivery::kAccepted);
}

// Ends one incarnation. Without a status it was killed, and what it has sent is lost with its
// lanes; else it ends when that has arrived.
void SimulatedJob::end(const ActorId& id, std::optional<int> exit_status) {
  const Duration grace = exit_status ? kDelayMax : Duration::zero();
  executor_.at(executor_.now() + grace, [this, id, exit_status] {
    const auto found = peers_.find(id.name);
    if (found == peers_.end() || found->second->id != id) return;
    // The peer is destroyed at the end: the asks that it still holds may be told to the forwarder.
    const auto ended = std::move(found->second);
    peers_.erase(found);
    forwarder_.down(ended->id);
    wanted_.at(id.name)->exit_status = exit_status;
    if (exit_status == 0) return;  // it has succeeded
    executor_.at(executor_.now() + kRestartAfter, [this, id] { spawn(id.name); });
  });
}

void SimulatedJob::kill(const std::string& actor) {
  end({full_name(actor), wanted(actor).start.incarnation}, std::nullopt);
  run_until([&] { return !running(actor); });
}

void SimulatedJob::drain(const std::string& actor) {
  const ActorId id{full_name(actor), wanted(actor).start.incarnation};
  const auto rank =
      controller_.remote<messages::ProgramInbox>({rank::kRankInboxPort, {}}, to_peer(id));
  if (rank.tell(messages::DrainProgram{kDrainMs}) != Delivery::kAccepted) return;
  run_until([&] { return !running(actor); }, std::chrono::milliseconds(2 * kDrainMs));
}

Result<nlohmann::json> SimulatedJob::ask_json(const std::string& actor,
                                              const nlohmann::json& question, Duration deadline) {
  const ActorId id{full_name(actor), wanted(actor).start.incarnation};
  const auto rank =
      controller_.remote<messages::ProgramInbox>({rank::kRankInboxPort, {}}, to_peer(id), id);
  const auto answer = std::make_shared<std::optional<Result<messages::AskedJson>>>();
  const Delivery sent = rank.tell(Ask<messages::AskJson>{
      {dump_json(question)},
      ReplyTo<messages::AskedJson>([answer](auto got) { *answer = std::move(got); })});
  if (sent != Delivery::kAccepted) return actor::undelivered(id.name, sent);
  const auto gone = [&] {
    const auto peer = peers_.find(id.name);
    return peer == peers_.end() || peer->second->id != id;
  };
  if (!run_until([&] { return *answer || gone(); }, deadline)) return late(id.name);
  if (!*answer) return Error{ErrorCode::kUnreachable, id.name + " ended before it answered"};
  if (!(*answer)->has_value()) return (*answer)->error();
  return parse_json((**answer)->body);
}

bool SimulatedJob::run_until(const std::function<bool()>& done, Duration limit) {
  return executor_.run_until(done, limit);
}

void SimulatedJob::run_for(Duration time) {
  executor_.run_until([] { return false; }, time);
}

bool SimulatedJob::running(const std::string& actor) const {
  const auto found = peers_.find(full_name(actor));
  return found != peers_.end() && found->second->ready;
}

std::uint64_t SimulatedJob::starts(const std::string& actor) const {
  return wanted_.at(full_name(actor))->start.incarnation.value;
}

std::optional<int> SimulatedJob::exit_status(const std::string& actor) const {
  return wanted_.at(full_name(actor))->exit_status;
}

}  // namespace tandem
