// An actor of a user's class in a System, with its type erased: it can be asked in JSON, reached by
// its peers, and drained.
//
// The class is wrapped: the inbox of the wrapper has two more messages. The StartMark makes a class
// with a member `void start(Context&)` begin to work of its own accord; start() is called once for
// each object, before its first message. The DrainMark is posted behind everything that the mailbox
// has accepted; so, when it is handled, all of that has been handled too, and the actor stops. A
// class with a member `void drain(Context&)` is told by it instead and calls cx.stop() itself, for
// example when its own asks have been answered. Each handler counts as work while it runs, and the
// making of the object as the load of a model, so that one that hangs is found out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "actors/program/actor_start.h"
#include "actors/program/json_inbox.h"
#include "runtime/actor/system.h"
#include "runtime/link/remote.h"

namespace tandem::program {

struct StartMark {};
struct DrainMark {};

template <class A>
concept Starts = requires(A actor, actor::Context& cx) {
  actor.start(cx);
};
template <class A>
concept Drains = requires(A actor, actor::Context& cx) {
  actor.drain(cx);
};

// Hears which kind of work the actor is at, as link::Progress::enter() does. May be empty.
using EnterPhase = std::function<void(const char* phase, Time now)>;

// Is at work as long as it lives, also where the user's code throws. `now` tells the time.
template <class Now>
class AtWork {
 public:
  AtWork(const EnterPhase& enter, const char* phase, Now now) : enter_(enter), now_(now) {
    if (enter_) enter_(phase, now_());
  }
  ~AtWork() {
    if (enter_) enter_("idle", now_());
  }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  const EnterPhase& enter_;
  const Now now_;
};

template <actor::Actor A>
class WithMarks {
  template <class Inbox>
  struct Extended;
  template <class... M>
  struct Extended<std::variant<M...>> {
    using Type = std::variant<M..., StartMark, DrainMark>;
  };

 public:
  using Inbox = typename Extended<typename A::Inbox>::Type;
  explicit WithMarks(std::unique_ptr<A> actor, EnterPhase enter = {})
      : actor_(std::move(actor)), enter_(std::move(enter)) {}

  template <class M>
  void handle(actor::Context& cx, M message) {
    const AtWork at_work(enter_, "handler", [&cx] { return cx.now(); });
    if constexpr (Starts<A>)
      if (!std::exchange(started_, true)) actor_->start(cx);
    if constexpr (std::is_same_v<M, DrainMark>)
      drain(cx);
    else if constexpr (!std::is_same_v<M, StartMark>)
      actor_->handle(cx, std::move(message));
  }

 private:
  void drain(actor::Context& cx) {
    if constexpr (Drains<A>)
      actor_->drain(cx);
    else
      cx.stop();
  }
  const std::unique_ptr<A> actor_;
  const EnterPhase enter_;
  bool started_ = false;
};

// A spawned actor. Its functions may be called from any thread, and outlive the actor.
struct HostedActor {
  ActorId address;
  std::function<void(const std::string& body, actor::ReplyTo<messages::AskedJson>)> ask_json;
  std::function<void()> withdraw;          // from the peers
  std::function<actor::Delivery()> start;  // these two post the marks
  std::function<actor::Delivery()> drain;
};

// The parts of the process in which an actor is spawned; they outlive it. `built` is called each
// time the class's object has been made, on the thread that runs the actor.
struct ActorHost {
  actor::System& system;
  link::Directory& directory;
  std::function<void()> built;
  EnterPhase enter = {};
};
using SpawnHosted = std::function<HostedActor(const ActorHost&, const ActorStart&)>;

// A function that spawns actors of class A, made by `factory` for each incarnation in the process.
template <actor::Actor A>
SpawnHosted spawn_hosted(std::function<std::unique_ptr<A>(const ActorStart&)> factory,
                         actor::SpawnOptions options) {
  return [factory = std::move(factory), options](const ActorHost& host, const ActorStart& start) {
    using Inbox = typename A::Inbox;
    const auto whole = host.system.spawn<WithMarks<A>>(
        start.name,
        [factory, start, built = host.built, enter = host.enter] {
          const AtWork at_work(enter, "load", steady_now);  // there is no Context yet
          auto actor = std::make_unique<WithMarks<A>>(factory(start), enter);
          built();
          return actor;
        },
        options);
    const auto port = actor::narrow<Inbox>(whole);
    const std::string name =
        link::inbox_name(start.name, wire::schema_hash(wire::wire_schema<Inbox>()));
    host.directory.expose(name, port);
    return HostedActor{
        .address = whole.address(),
        .ask_json =
            [port](const std::string& body, actor::ReplyTo<messages::AskedJson> reply) {
              tell_json(port, body, reply);
            },
        .withdraw = [&directory = host.directory, name] { directory.withdraw(name); },
        .start = [whole] { return whole.tell(StartMark{}); },
        .drain = [whole] { return whole.tell(DrainMark{}); }};
  };
}

}  // namespace tandem::program
