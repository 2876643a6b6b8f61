// The two kinds of process: an actor that answers dials every caller that it is named, and a caller
// is driven by its parent over a link of its own. Both end with the process that started them.
#include "tests/bench/ask_processes.h"

#include <csignal>
#include <latch>

#include "runtime/base/check.h"
#include "tests/bench/link_peers.h"
#include "tests/bench/must.h"

namespace tandem::bench {

using actor::Ask;
using actor::Context;
using actor::Delivery;
using actor::Ref;
using link::Hello;

namespace {

constexpr const char* kEchoPort = "echo";
constexpr const char* kCallerPort = "caller";

class Echo {
 public:
  using Inbox = EchoInbox;
  void handle(Context&, Ask<SmallValue> ask) { ask.reply(std::string(kAnswer)); }
};

// Asks for what RunCalls says, all at once, and answers when the last answer has come.
class Driver {
 public:
  using Inbox = CallerInbox;
  explicit Driver(std::function<std::vector<Ref<EchoInbox>>()> actors)
      : actors_(std::move(actors)) {}

  void handle(Context& cx, Ask<RunCalls> ask) {
    const std::vector<Ref<EchoInbox>> actors = actors_();
    waiting_ = ask.question.calls;
    done_ = ask.reply;
    for (std::int64_t i = 0; i < ask.question.calls; ++i)
      cx.ask(actors[static_cast<std::size_t>(i) % actors.size()], SmallValue{}, kPatience,
             std::function([this](Context&, Result<std::string> answer) {
               CHECK(must(std::move(answer)) == kAnswer);
               if (--waiting_ == 0) done_({});
             }));
  }

 private:
  const std::function<std::vector<Ref<EchoInbox>>()> actors_;
  std::int64_t waiting_ = 0;
  actor::ReplyTo<void> done_;
};

// Waits for SIGTERM, which is blocked in every thread.
void serve(sigset_t& signals) {
  int received = 0;
  sigwait(&signals, &received);
}

sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

}  // namespace

FrameSizes frame_sizes() {
  FrameSizes sizes;
  struct Answers final : actor::Target<EchoInbox> {
    Delivery post(EchoInbox message) override {
      std::get<Ask<SmallValue>>(message).reply(std::string(kAnswer));
      return Delivery::kAccepted;
    }
  };
  link::Directory there, here;
  there.expose(kEchoPort, Ref<EchoInbox>({kEchoPort, {1}}, std::make_shared<Answers>()));
  const auto back = [&](std::string frame) {
    sizes.reply = frame.size();
    return link::Sent::kAccepted;
  };
  const auto away = [&](std::string frame) {
    sizes.request = frame.size();
    CHECK(there.deliver(frame, back) == link::Offer::kTaken);
    return link::Sent::kAccepted;
  };
  const auto echo = here.remote<EchoInbox>({kEchoPort, {}}, away);
  CHECK(echo.tell(Ask<SmallValue>{}) == Delivery::kAccepted);
  return sizes;
}

Caller::Caller(std::size_t actors_expected, Transport transport)
    : actors_expected_(actors_expected), address_(transport) {
  driver_ = system_.spawn<Driver>(
      "driver", [this] { return std::make_unique<Driver>([this] { return actors(); }); });
  auto callbacks =
      callbacks_of(directory_, [this](const ActorId& peer) { return link::to_peer(*link_, peer); });
  callbacks.on_up = [this](const ActorId& peer, const Hello&) {
    const std::lock_guard lock(mutex_);
    actors_.push_back(directory_.remote<EchoInbox>({kEchoPort, {}}, link::to_peer(*link_, peer)));
    changed_.notify_all();
  };
  link_ = must(link::LinkServer::listen(io_, {address_.binding()},
                                        {.name = "caller", .incarnation = {1}, .build = kBuild}, {},
                                        callbacks));
  link_->start();
}

Caller::~Caller() {
  link_->close(Duration::zero());
  executor_.stop();
}

std::string Caller::address() const { return address_.text(link_->endpoint()); }

std::vector<Ref<EchoInbox>> Caller::actors() {
  std::unique_lock lock(mutex_);
  CHECK(changed_.wait_for(lock, kPatience, [&] { return actors_.size() == actors_expected_; }));
  return actors_;
}

// PARENT NAME PLACE…
int run_echo(std::span<const char* const> words) {
  sigset_t signals = block_signals();
  die_with_parent(words[0]);
  link::Directory directory;
  link::IoThread io("link");
  actor::ThreadedExecutor executor(1, 1);
  actor::System system(executor, {});
  directory.expose(kEchoPort, system.spawn<Echo>("echo", [] { return std::make_unique<Echo>(); }));
  std::vector<std::unique_ptr<Dialled>> links;
  for (const char* address : words.subspan(2))
    links.push_back(std::make_unique<Dialled>(io, directory, dial_of(address), words[1]));
  serve(signals);
  links.clear();
  executor.stop();
  return 0;
}

// PARENT NAME CONTROL ACTORS unix|tcp
int run_caller(std::span<const char* const> words) {
  sigset_t signals = block_signals();
  die_with_parent(words[0]);
  Caller caller(std::stoul(words[3]),
                words[4] == std::string_view("tcp") ? Transport::kTcpCurve : Transport::kUnix);
  link::Directory directory;
  link::IoThread io("control");
  directory.expose(kCallerPort, caller.driver());
  Dialled control(io, directory, dial_of(words[2]), words[1], caller.address());
  serve(signals);
  return 0;
}

RemoteCallers::RemoteCallers(Children& children, int callers, int actors, Transport transport) {
  auto callbacks =
      callbacks_of(directory_, [this](const ActorId& peer) { return link::to_peer(*link_, peer); });
  callbacks.on_up = [this](const ActorId& peer, const Hello& hello) {
    const std::lock_guard lock(mutex_);
    endpoints_.push_back(hello.opaque);
    callers_.push_back(
        directory_.remote<CallerInbox>({kCallerPort, {}}, link::to_peer(*link_, peer)));
    changed_.notify_all();
  };
  link_ = must(link::LinkServer::listen(io_, {address_.binding()},
                                        {.name = "control", .incarnation = {1}, .build = kBuild},
                                        {}, callbacks));
  link_->start();
  children.spawn("caller", callers,
                 {address_.text(link_->endpoint()), std::to_string(actors),
                  transport == Transport::kTcpCurve ? "tcp" : "unix"});
  std::vector<std::string> endpoints;
  {
    std::unique_lock lock(mutex_);
    const auto all = static_cast<std::size_t>(callers);
    CHECK(changed_.wait_for(lock, kPatience, [&] { return callers_.size() == all; }));
    endpoints = endpoints_;
  }
  children.spawn("echo", actors, endpoints);
  for (const auto& caller : callers_)  // answers once all actors have come: a first, short batch
    must(actor::ask_and_wait(caller, RunCalls{actors}, kPatience));
}

RemoteCallers::~RemoteCallers() { link_->close(Duration::zero()); }

void RemoteCallers::run(std::int64_t calls_each) {
  std::latch done(static_cast<std::ptrdiff_t>(callers_.size()));
  for (const auto& caller : callers_) {
    const Delivery sent =
        caller.tell(Ask<RunCalls>{{calls_each}, actor::ReplyTo<void>([&done](Result<void> answer) {
                                    must(std::move(answer));
                                    done.count_down();
                                  })});
    CHECK(sent == Delivery::kAccepted);
  }
  done.wait();
}

}  // namespace tandem::bench
