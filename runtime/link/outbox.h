// Messages of an actor on their way to receivers that may be at their limit or away: kept in order
// for each receiver, and offered again until they are taken.
//
//   Outbox          for any number of receivers; its owner says when messages are offered
//   OutboxTo<Inbox> for one receiver, which it offers messages to by itself
//
// Both are members of the actor that sends and are used in its turns only; when the incarnation
// ends, its messages are dropped. They have no limit of their own: the actor bounds them by sending
// no more than the credit of its peers allows. A message that no link can carry is an Error, since
// another attempt would end the same way.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <set>
#include <utility>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/ref.h"
#include "runtime/base/clock.h"
#include "runtime/wire/split.h"

namespace tandem::link {

inline constexpr Duration kRetryAfter = std::chrono::milliseconds(20);  // the pause before flush()

// The messages for a receiver that is gone are dropped where its end is reported by other means,
// and wait for it where it will come back.
enum class WhenGone { kDrop, kWait };

// The owner calls flush() after add(), and again after kRetryAfter while flush() returns true.
class Outbox {
 public:
  explicit Outbox(WhenGone when_gone = WhenGone::kDrop) : when_gone_(when_gone) {}

  // Queues a message for the receiver `to`, which `ref` reaches.
  template <class Inbox, class M>
  void add(const ActorId& to, const actor::Ref<Inbox>& ref, M message) {
    messages_.push_back(
        {to, [to, ref, message = Inbox(std::move(message))]() -> Result<actor::Delivery> {
           const actor::Delivery sent = ref.tell(message);
           if (sent != actor::Delivery::kTooLarge) return sent;
           // The Error of the link knows the sizes, and this adds the receiver.
           Error why = ref.too_large(message);
           why.message += ", and it is for " + to.name;
           return why;
         }});
  }

  // Adds a message in as many parts as the link of `ref` needs, cut between items of `list`.
  template <class Inbox, class M, class Item>
  void add(const ActorId& to, const actor::Ref<Inbox>& ref, M whole, std::vector<Item> M::*list) {
    for (M& part : wire::split(std::move(whole), list, ref.bytes_max()))
      add(to, ref, std::move(part));
  }

  // Offers all messages once. True: some wait. Error: one message can never be sent; the messages
  // after it are kept, whatever their receiver.
  Result<bool> flush() {
    // Receivers that refused a message in this call. Their later messages are not even tried, so
    // that the order for each stays; those for other receivers pass them.
    std::set<ActorId> waiting;
    for (auto message = messages_.begin(); message != messages_.end();) {
      if (waiting.contains(message->to)) {
        ++message;
        continue;
      }
      const Result<actor::Delivery> sent = message->deliver();
      if (sent && waits(*sent)) {
        waiting.insert((message++)->to);
        continue;
      }
      // Taken, or never to be: the receiver is gone and not waited for, or the message is too
      // large.
      message = messages_.erase(message);
      if (!sent) return sent.error();
    }
    return !messages_.empty();
  }
  void clear() { messages_.clear(); }
  std::size_t size() const { return messages_.size(); }

 private:
  // The receiver and the call that offers it the message. The type of the message is hidden in the
  // call, so that one list has messages for all kinds of inboxes.
  struct Message {
    ActorId to;
    std::function<Result<actor::Delivery>()> deliver;
  };

  bool waits(actor::Delivery sent) const {
    return sent == actor::Delivery::kFull ||
           (sent == actor::Delivery::kGone && when_gone_ == WhenGone::kWait);
  }

  const WhenGone when_gone_;
  std::list<Message> messages_;
};

// A message that no link can carry fails the actor, with kInvalid.
template <class Inbox>
class OutboxTo {
 public:
  OutboxTo(actor::Ref<Inbox> to, Duration retry_interval)
      : to_(std::move(to)), retry_interval_(retry_interval) {}

  // The message goes behind all messages that wait.
  void send(actor::Context& cx, Inbox message) {
    messages_.add(to_.address(), to_, std::move(message));
    if (!retry_waits_) flush(cx);
  }
  // Sends a message in as many parts as the link needs, cut between items of `list`.
  template <class M, class Item>
  void send(actor::Context& cx, M whole, std::vector<Item> M::*list) {
    messages_.add(to_.address(), to_, std::move(whole), list);
    if (!retry_waits_) flush(cx);
  }
  void clear() { messages_.clear(); }
  // Whether the receiver has taken everything.
  bool empty() const { return messages_.size() == 0; }

 private:
  void flush(actor::Context& cx) {
    const Result<bool> some_wait = messages_.flush();
    if (!some_wait) {
      retry_waits_ = true;  // nothing that is behind the message is sent in its place
      return cx.fail(some_wait.error());
    }
    if (!*some_wait) return;
    // One timer for all messages that wait. It may capture `this`: see actor::Context::after.
    retry_waits_ = true;
    cx.after(retry_interval_, [this](actor::Context& later) {
      retry_waits_ = false;
      flush(later);
    });
  }

  const actor::Ref<Inbox> to_;
  const Duration retry_interval_;
  Outbox messages_{WhenGone::kWait};
  bool retry_waits_ = false;
};

}  // namespace tandem::link
