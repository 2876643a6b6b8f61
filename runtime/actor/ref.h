// How one actor reaches another: a Ref posts to a mailbox of this process or hands the message to a
// link, and the sender cannot tell which. Refs are values, cheap to copy, usable from any thread,
// and may outlive the actor that they name.
//
// An ask is a message of its own type, Ask<Q>, that carries a ReplyTo, by which the receiver
// answers once, in its handler or later. When the last copy of a ReplyTo is destroyed without an
// answer, the asker gets an Error, so that no actor waits for an answer that cannot come any more.
//
//   struct Count { using Reply = int; };                       // the question names its answer
//   using Inbox = std::variant<Ask<Count>>;                    // of the actor that is asked
//   void handle(Context&, Ask<Count> ask) { ask.reply(17); }   // now, or later from a kept copy
//   cx.ask(ref, Count{}, deadline, then);                      // in another actor (context.h)
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace tandem::actor {

// The outcome of a tell. kAccepted says that the message lies in a mailbox or in the queue of a
// link, not that it has been handled: the receiver may end before.
enum class Delivery {
  kAccepted,
  kFull,      // the mailbox or the link's window is at its limit: nothing was taken, try again
  kGone,      // the actor has ended, or the link to its process is down
  kTooLarge,  // over the link's limit, now and always: Ref::too_large() says by how much
};

// The Error for an ask that was not taken: kInvalid if the message is too large, since trying again
// cannot help, else kUnreachable. `sent` is not kAccepted.
inline Error undelivered(const std::string& to, Delivery sent) {
  const char* const why = sent == Delivery::kFull       ? " is at its limit"
                          : sent == Delivery::kTooLarge ? " was asked more than its link can carry"
                                                        : " is gone";
  return {sent == Delivery::kTooLarge ? ErrorCode::kInvalid : ErrorCode::kUnreachable, to + why};
}

inline constexpr std::uint64_t kBytesUnlimited = std::numeric_limits<std::uint64_t>::max();

// The receiving end of Refs: a mailbox, or a link to one.
template <class Inbox>
class Target {
 public:
  virtual ~Target() = default;
  virtual Delivery post(Inbox message) = 0;  // from any thread; never blocks
  // The largest encoding of a message; a mailbox of this process has no such limit.
  virtual std::uint64_t bytes_max() const { return kBytesUnlimited; }
  // The Error for a message over that limit (Ref::too_large).
  virtual Error too_large(const Inbox&) const { return {ErrorCode::kInvalid, "too large"}; }
};

// An empty Ref, made by Ref(), answers kGone to every tell.
template <class Inbox>
class Ref {
 public:
  Ref() = default;
  Ref(ActorId address, std::shared_ptr<Target<Inbox>> target)
      : address_(std::move(address)), target_(std::move(target)) {}

  // Never blocks. Messages of one sender to one receiver are handled in the order of their tells
  // (XR-2). A message that was not taken is destroyed.
  [[nodiscard]] Delivery tell(Inbox message) const {
    return target_ ? target_->post(std::move(message)) : Delivery::kGone;
  }
  // The receiver, in the incarnation that it had when the Ref was made: a restart of the actor does
  // not change it.
  const ActorId& address() const { return address_; }
  // The largest encoding of one message; a larger message is kTooLarge.
  std::uint64_t bytes_max() const { return target_ ? target_->bytes_max() : kBytesUnlimited; }
  // The Error for a message that is kTooLarge: kInvalid, with the type of the message, its bytes
  // and the limit.
  Error too_large(const Inbox& message) const {
    return target_ ? target_->too_large(message) : undelivered(address_.name, Delivery::kGone);
  }
  explicit operator bool() const { return target_ != nullptr; }

 private:
  ActorId address_;
  std::shared_ptr<Target<Inbox>> target_;
};

// A Ref to the same actor that takes only the alternatives of Sub, all of which are alternatives of
// Inbox. So the messages that a remote peer may send are a type of their own.
template <class Sub, class Inbox>
Ref<Sub> narrow(const Ref<Inbox>& ref) {
  struct Narrowed final : Target<Sub> {
    explicit Narrowed(Ref<Inbox> r) : whole(std::move(r)) {}
    Delivery post(Sub message) override {
      return std::visit([this](auto&& m) { return whole.tell(Inbox(std::move(m))); },
                        std::move(message));
    }
    std::uint64_t bytes_max() const override { return whole.bytes_max(); }
    Error too_large(const Sub& message) const override {
      return std::visit([this](const auto& m) { return whole.too_large(Inbox(m)); }, message);
    }
    Ref<Inbox> whole;
  };
  return Ref<Sub>(ref.address(), std::make_shared<Narrowed>(ref));
}

// The place for one answer. The first answer counts; later ones are dropped. Any thread may answer.
template <class R>
class Answerable {
 public:
  virtual ~Answerable() = default;
  virtual void answer(Result<R> reply) = 0;

 protected:
  static Error unanswered() {
    return {ErrorCode::kFailed, "the asked actor went away without an answer"};
  }
};

// The right to answer one ask. Copies share it: the first call of any copy answers. When the last
// copy is destroyed without an answer, the asker gets the Error of unanswered(). A ReplyTo made by
// ReplyTo() drops answers: no actor waits for them.
template <class R>
class ReplyTo {
 public:
  ReplyTo() = default;
  template <class F>
  requires std::invocable<F&, Result<R>>
  explicit ReplyTo(F function) : state_(std::make_shared<Once<F>>(std::move(function))) {}
  explicit ReplyTo(std::shared_ptr<Answerable<R>> state) : state_(std::move(state)) {}
  void operator()(Result<R> reply) const {
    if (state_) state_->answer(std::move(reply));
  }
  // The shared state, for machinery that keeps many of them; null for ReplyTo().
  const std::shared_ptr<Answerable<R>>& state() const { return state_; }

 private:
  // A function that is called once, with the answer or by the destructor.
  template <class F>
  class Once final : public Answerable<R> {
   public:
    explicit Once(F function) : function_(std::move(function)) {}
    ~Once() override { answer(this->unanswered()); }
    void answer(Result<R> reply) override {
      if (!answered_.exchange(true)) function_(std::move(reply));
    }

   private:
    F function_;
    std::atomic<bool> answered_ = false;
  };
  std::shared_ptr<Answerable<R>> state_;
};

// The message by which a question of type Q is asked; `Q::Reply` is the type of its answer. An
// Inbox lists Ask<Q>; Context::ask and ask_and_wait make it.
template <class Q>
struct Ask {
  Q question;
  ReplyTo<typename Q::Reply> reply;
};

}  // namespace tandem::actor
