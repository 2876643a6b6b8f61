// Messages on their way to a receiver that may be at its limit: kept in order, offered again until
// they are taken. Bounded by its owner, who sends no more than its peers' credit allows. A message
// that no link can carry fails the actor (kInvalid: another incarnation would meet it again). A
// member of the actor that sends, touched in that actor's turns only.
#pragma once

#include <deque>
#include <utility>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"

namespace tandem::runtime {

template <class Inbox>
class Outbox {
 public:
  Outbox(Ref<Inbox> to, Duration retry_interval)
      : to_(std::move(to)), retry_interval_(retry_interval) {}

  void send(Context& cx, Inbox message) {
    messages_.push_back(std::move(message));
    if (!retry_waits_) flush(cx);
  }
  // The parts of one message, see split() of runtime/wire/split.h.
  void send_all(Context& cx, auto messages) {
    for (auto& message : messages) send(cx, std::move(message));
  }
  std::uint64_t bytes_max() const { return to_.bytes_max(); }
  bool empty() const { return messages_.empty(); }

 private:
  void flush(Context& cx) {
    while (!messages_.empty()) {
      const Delivery sent = to_.tell(messages_.front());
      if (sent == Delivery::kTooLarge) return cx.fail(to_.too_large(messages_.front()));
      if (sent != Delivery::kAccepted) break;
      messages_.pop_front();
    }
    if (messages_.empty()) return;
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

}  // namespace tandem::runtime
