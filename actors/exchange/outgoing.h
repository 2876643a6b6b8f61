// The messages of one sender to its peers, kept in order per peer and offered again while a peer's
// link is full. A peer that is gone loses the messages for it; its end is reported by other means.
// A message that no link can carry is an Error for the sender: another attempt would end the same
// way. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/actor/ref.h"
#include "runtime/base/clock.h"
#include "runtime/wire/split.h"

namespace tandem::exchange {

inline constexpr Duration kRetryAfter = std::chrono::milliseconds(20);  // the pause before flush()

// The owner calls flush() after add(), and again after kRetryAfter while flush() returns true.
class OutgoingMessages {
 public:
  // Queues a message for the peer `to`, which `ref` reaches.
  template <class Inbox, class M>
  void add(const actor::Address& to, const actor::Ref<Inbox>& ref, M message) {
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
  void add(const actor::Address& to, const actor::Ref<Inbox>& ref, M whole,
           std::vector<Item> M::*list) {
    for (M& part : wire::split(std::move(whole), list, ref.bytes_max()))
      add(to, ref, std::move(part));
  }

  // Offers all messages once. True: some wait for a peer whose link is full. Error: one message can
  // never be sent; the messages after it are kept, whatever their peer.
  Result<bool> flush() {
    // Peers whose link was found full in this call. Their later messages are not even tried, so
    // that the order per peer stays; those for other peers pass them.
    std::set<actor::Address> full;
    for (auto message = messages_.begin(); message != messages_.end();) {
      if (full.contains(message->to)) {
        ++message;
        continue;
      }
      const Result<actor::Delivery> sent = message->deliver();
      if (sent && *sent == actor::Delivery::kFull) {
        full.insert((message++)->to);
        continue;
      }
      // Taken, or never to be: the receiver is gone, or the message is too large.
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
    actor::Address to;
    std::function<Result<actor::Delivery>()> deliver;
  };
  std::list<Message> messages_;
};

}  // namespace tandem::exchange
