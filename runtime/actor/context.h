// What a handler may do besides its own work: read the time, draw random numbers, set timers, ask,
// monitor, stop. Valid only during the handler's call; never kept, never shared between threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/actor/executor.h"
#include "runtime/actor/ref.h"
#include "runtime/actor/waiting_ask.h"
#include "runtime/base/rng.h"

namespace tandem::runtime {

class Context;

// A piece of work that runs in an actor's turn: a timer or the answer to an ask.
using Turn = std::function<void(Context&)>;

class Context {
 public:
  virtual ~Context() = default;

  virtual Time now() const = 0;
  virtual Rng& rng() = 0;
  virtual const Address& self() const = 0;

  // `turn` runs in this actor's turn after `delay`. It may capture the actor: an actor that was
  // restarted or has stopped never sees its predecessor's turns.
  virtual TimerId after(Duration delay, Turn turn) = 0;
  virtual void cancel(TimerId timer) = 0;

  // Runs `down` in this actor's turn when the watched local actor ends for good (a restart is no
  // end); at once if it already has.
  virtual void monitor(const Address& watched,
                       std::function<void(Context&, const Error&)> down) = 0;

  virtual void stop() = 0;              // this actor ends after the handler, its mailbox dropped
  virtual void fail(Error reason) = 0;  // as stop, but its supervisor hears of it and may restart

  // Asks with a deadline: `then` runs in this actor's turn exactly once, with the reply or an Error
  // (kTimedOut names whom was asked; a full or missing receiver fails at once).
  template <class Q, class Inbox>
  void ask(const Ref<Inbox>& whom, Q question, Duration deadline,
           std::function<void(Context&, Result<typename Q::Reply>)> then) {
    using R = typename Q::Reply;
    // Kept until the outcome is known: a message that was not taken dies unanswered.
    const auto ask =
        std::make_shared<detail::AskOf<R>>(asker(), whom.address().name, std::move(then));
    expect(ask, deadline);
    const Delivery sent = whom.tell(Ask<Q>{std::move(question), ReplyTo<R>(ask)});
    if (sent != Delivery::kAccepted) ask->answer(undelivered(whom.address().name, sent));
  }

  // Posts turns to this actor from any thread, for machinery that answers later. At the mailbox's
  // limit a turn is still taken: it is the answer to something this actor started and bounded.
  virtual std::function<void(Turn)> turn_poster() = 0;

 private:
  virtual detail::Asker asker() const = 0;
  // Times `ask` out after `deadline`, unless it is answered by then.
  virtual void expect(const std::shared_ptr<detail::WaitingAsk>& ask, Duration deadline) = 0;
};

}  // namespace tandem::runtime
