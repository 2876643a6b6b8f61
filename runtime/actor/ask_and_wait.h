// The body of ask_and_wait, which system.h declares and describes.
//
// The slot for the answer is shared with the ReplyTo: an answer that comes after the deadline finds
// memory to write to although the waiting call has returned.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/actor/ref.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::actor {

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
                                           std::unique_lock lock(slot->mutex);
                                           slot->reply = std::move(reply);
                                           lock.unlock();  // the thread that wakes needs it
                                           slot->changed.notify_one();
                                         })});
  // The ReplyTo of a message that was not taken has filled the slot too; the reason of the refusal
  // says more.
  if (sent != Delivery::kAccepted) return undelivered(whom.address().name, sent);
  // Time of the machine and not of an executor. A simulated executor does not run meanwhile.
  std::unique_lock lock(slot->mutex);
  if (!slot->changed.wait_for(lock, deadline, [&] { return slot->reply.has_value(); }))
    return Error{ErrorCode::kTimedOut,
                 "asked " + whom.address().name + " and had no answer in time"};
  return std::move(*slot->reply);
}

}  // namespace tandem::actor
