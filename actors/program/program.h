// The whole of a user's program: registers actor classes, and serves the one actor for which a job
// has started the process.
//
//   struct Add { std::int64_t amount = 0; using Reply = std::int64_t; };
//   TANDEM_WIRE(Add, amount)
//   class Counter {
//    public:
//     using Inbox = std::variant<tandem::Ask<Add>>;
//     void handle(tandem::Context&, tandem::Ask<Add> ask) {
//       total_ += ask.question.amount;
//       ask.reply(total_);
//     }
//    private:
//     std::int64_t total_ = 0;
//   };
//   int main() { return tandem::Program().actor<Counter>("counter").run(); }
//
// A role is the key below `actors:` in the job file; each replica of it is a process. Actors follow
// runtime/actor/actor.h: handlers run one at a time and must not block. A class is made from a
// `const ActorStart&` if it has such a constructor; `void start(Context&)` and `void
// drain(Context&)` are called where it has them (actors/program/hosted_actor.h). Included by users
// as <tandem/program.h>.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "actors/program/actor_start.h"
#include "actors/program/hosted_actor.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/system.h"
#include "runtime/base/log.h"
#include "runtime/wire/codec.h"

namespace tandem {

// The names that an actor needs, in one place.
using actor::Ask;
using actor::Context;
using actor::Delivery;
using actor::Ref;
using actor::ReplyTo;
using actor::RestartPolicy;
using actor::SpawnOptions;

template <actor::Actor A>
using ActorFactory = std::function<std::unique_ptr<A>(const ActorStart&)>;

// A factory for classes that are made from an ActorStart, or from nothing.
template <actor::Actor A>
ActorFactory<A> usual_factory() {
  return [](const ActorStart& start) {
    if constexpr (std::constructible_from<A, const ActorStart&>)
      return std::make_unique<A>(start);
    else
      return std::make_unique<A>();
  };
}

class Program {
 public:
  // `options.restart` is the policy within the process: a restarted object keeps the messages that
  // wait. When the policy is exhausted the process ends, and the job starts another one.
  template <actor::Actor A>
  Program& actor(const std::string& role, SpawnOptions options = {}) {
    return actor<A>(role, usual_factory<A>(), options);
  }
  // `factory` may throw, which is a failure of the actor as one in a handler is.
  template <actor::Actor A>
  Program& actor(const std::string& role, ActorFactory<A> factory, SpawnOptions options = {}) {
    classes_[role] = program::spawn_hosted<A>(std::move(factory), options);
    return *this;
  }

  // Serves until the actor has ended or the process is told to end. Call it from main, before any
  // other thread exists, and return its value: 0 when the actor stopped by itself or was drained, 1
  // when it failed or the controller was lost, 64 when no job has started this process.
  int run();
  const std::map<std::string, program::SpawnHosted>& classes() const { return classes_; }

 private:
  std::map<std::string, program::SpawnHosted> classes_;
};

}  // namespace tandem
