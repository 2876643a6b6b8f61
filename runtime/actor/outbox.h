// Messages on their way to a receiver that may be at its limit or away: kept in order, and offered
// again after `retry_interval` until they are taken.
//
// An Outbox is a member of the actor that sends, and is used in that actor's turns only; when the
// incarnation ends, its messages are dropped. It has no limit of its own: the actor bounds it by
// sending no more than the credit of its peers allows. A message that no link can carry fails the
// actor with kInvalid, since another incarnation would meet the same message again.
#pragma once

#include <deque>
#include <utility>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"

namespace tandem::actor {

template <class Inbox>
class Outbox {
 public:
  Outbox(Ref<Inbox> to, Duration retry_interval)
      : to_(std::move(to)), retry_interval_(retry_interval) {}

  // The message goes behind all messages that wait.
  void send(Context& cx, Inbox message) {
    messages_.push_back(std::move(message));
    if (!retry_waits_) flush(cx);
  }
  // The parts of one message, see split() of runtime/wire/split.h.
  void send_all(Context& cx, auto messages) {
    for (auto& message : messages) send(cx, std::move(message));
  }
  // The largest encoding that the receiver's link takes.
  std::uint64_t bytes_max() const { return to_.bytes_max(); }
  // Whether the receiver has taken everything.
  bool empty() const { return messages_.empty(); }

 private:
  // Sends until a message is refused; no later message overtakes that one.
  void flush(Context& cx) {
    while (!messages_.empty()) {
      const Delivery sent = to_.tell(messages_.front());
      if (sent == Delivery::kTooLarge) return cx.fail(to_.too_large(messages_.front()));
      if (sent != Delivery::kAccepted) break;
      messages_.pop_front();
    }
    if (messages_.empty()) return;
    // One timer for all messages that wait. It may capture `this`: see Context::after.
    retry_waits_ = true;
    cx.after(retry_interval_, [this](Context& later) {
      retry_waits_ = false;
      flush(later);
    });
  }

  const Ref<Inbox> to_;
  const Duration retry_interval_;
  std::deque<Inbox> messages_;
  bool retry_waits_ = false;
};

}  // namespace tandem::actor
