// The body of ask_and_wait (system.h).
#pragma once

#include <condition_variable>
#include <mutex>

namespace tandem::runtime {

template <class Q, class Inbox>
Result<typename Q::Reply> ask_and_wait(const Ref<Inbox>& whom, Q question, Duration deadline) {
  using R = typename Q::Reply;
  struct Slot {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<R>> reply;
  };
  auto slot = std::make_shared<Slot>();
  const Delivery sent = whom.tell(Ask<Q>{std::move(question), ReplyTo<R>([slot](Result<R> reply) {
                                           const std::lock_guard lock(slot->mutex);
                                           slot->reply = std::move(reply);
                                           slot->changed.notify_one();
                                         })});
  if (sent != Delivery::kAccepted) return undelivered(whom.address().name, sent);
  std::unique_lock lock(slot->mutex);
  if (!slot->changed.wait_for(lock, deadline, [&] { return slot->reply.has_value(); }))
    return Error{ErrorCode::kTimedOut,
                 "asked " + whom.address().name + " and had no answer in time"};
  return std::move(*slot->reply);
}

}  // namespace tandem::runtime
