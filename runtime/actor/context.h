// The Context is the only way of a handler to the world around its actor: the time, random numbers,
// timers, asks, monitors, and the actor's own end. Because nothing else is used, the same actor
// runs on threads and in a simulation (executor.h). A Context is valid only during the handler's
// call; never keep one, and never use one on another thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/actor/executor.h"
#include "runtime/actor/ref.h"
#include "runtime/actor/waiting_ask.h"
#include "runtime/base/rng.h"

namespace tandem::actor {

class Context;

// A piece of work that runs in an actor's turn, that is, between two handlers and with the same
// exclusion as one (XR-1): a timer or the answer to an ask. Turns that wait are run before
// messages.
using Turn = std::function<void(Context&)>;

class Context {
 public:
  virtual ~Context() = default;

  virtual Time now() const = 0;
  // One generator for the actor, in all of its incarnations; its seed is the executor's
  // draw_seed().
  virtual Rng& rng() = 0;
  // The incarnation that is running.
  virtual const ActorId& self() const = 0;

  // `turn` runs in this actor's turn, at the earliest after `delay`. `turn` may capture the actor's
  // `this`: turns of an incarnation are dropped when that incarnation ends.
  virtual TimerId after(Duration delay, Turn turn) = 0;
  // Nothing happens where the timer has fired. A turn of a fired timer may still wait behind the
  // handler that cancels it; that turn runs.
  virtual void cancel(TimerId timer) = 0;

  // Runs `down` in this actor's turn when the watched actor of the same System ends for good; a
  // restart is no end. If no such actor exists, or if the actor of that name is a later one, `down`
  // runs in the next turn with kNotFound.
  virtual void monitor(const ActorId& watched,
                       std::function<void(Context&, const Error&)> down) = 0;

  // Ends this actor after the handler; the messages in its mailbox are dropped.
  virtual void stop() = 0;
  // Reports a failure after the handler. The restart policy of the System decides whether a new
  // incarnation follows, which keeps the mailbox, or the actor ends as by stop() (AC-2, AC-3).
  virtual void fail(Error reason) = 0;

  // Asks with a deadline. `then` runs in this actor's turn exactly once, with the reply or an
  // Error: kTimedOut with the name of the asked actor, kUnreachable or kInvalid where the message
  // was not taken, kFailed where the asked actor dropped the ask. `then` does not run if this
  // incarnation ends first.
  template <class Q, class Inbox>
  void ask(const Ref<Inbox>& whom, Q question, Duration deadline,
           std::function<void(Context&, Result<typename Q::Reply>)> then) {
    using R = typename Q::Reply;
    // A second owner until tell() has returned: with only the one in the message, a message that is
    // not taken would answer for itself, and the reason of the refusal would be lost.
    const auto ask =
        std::make_shared<detail::AskOf<R>>(asker(), whom.address().name, std::move(then));
    expect(ask, deadline);
    const Delivery sent = whom.tell(Ask<Q>{std::move(question), ReplyTo<R>(ask)});
    if (sent != Delivery::kAccepted) ask->answer(undelivered(whom.address().name, sent));
  }

  // A function that posts turns to this actor from any thread, for machinery that answers later. It
  // may outlive the actor; turns for an incarnation that has ended are dropped. Turns do not count
  // against the limit of the mailbox: each is the answer to work that this actor started and
  // bounds.
  virtual std::function<void(Turn)> turn_poster() = 0;

 private:
  virtual detail::Asker asker() const = 0;
  // Registers `ask`, which times out after `deadline` unless it is answered before.
  virtual void expect(const std::shared_ptr<detail::WaitingAsk>& ask, Duration deadline) = 0;
};

}  // namespace tandem::actor
