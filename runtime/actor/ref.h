// How one actor reaches another: a Ref posts to a mailbox of this process or hands the message to a
// link; the caller can't tell. Refs are values, cheap to copy, usable from any thread.
//
// An ask is a message of its own type, Ask<Q>, that carries its ReplyTo: the receiver answers now
// or later, once. A ReplyTo that dies unanswered answers with an Error, so nobody waits for the
// dead.
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

namespace tandem::runtime {

// "controller", "exchange/arith-1", "arith-1/rollout/0", "node/vm"; incarnation 0: whichever lives.
struct Address {
  std::string name;
  Incarnation incarnation;
  auto operator<=>(const Address&) const = default;
};

enum class Delivery {
  kAccepted,
  kFull,      // the mailbox or the link's window is at its limit: nothing was taken
  kGone,      // nobody of that name
  kTooLarge,  // over the link's limit, now and always: Ref::too_large() says by how much
};

// Why an ask was not taken, for whoever asked.
inline Error undelivered(const std::string& to, Delivery sent) {
  const char* const why = sent == Delivery::kFull       ? " is at its limit"
                          : sent == Delivery::kTooLarge ? " was asked more than its link can carry"
                                                        : " is gone";
  return {sent == Delivery::kTooLarge ? ErrorCode::kInvalid : ErrorCode::kUnreachable, to + why};
}

inline constexpr std::uint64_t kBytesUnlimited = std::numeric_limits<std::uint64_t>::max();

template <class Inbox>
class Target {
 public:
  virtual ~Target() = default;
  virtual Delivery post(Inbox message) = 0;  // from any thread; never blocks
  // Only what goes over a link has a limit.
  virtual std::uint64_t bytes_max() const { return kBytesUnlimited; }
  virtual Error too_large(const Inbox&) const { return {ErrorCode::kInvalid, "too large"}; }
};

template <class Inbox>
class Ref {
 public:
  Ref() = default;
  Ref(Address address, std::shared_ptr<Target<Inbox>> target)
      : address_(std::move(address)), target_(std::move(target)) {}

  [[nodiscard]] Delivery tell(Inbox message) const {
    return target_ ? target_->post(std::move(message)) : Delivery::kGone;
  }
  const Address& address() const { return address_; }
  // The largest encoding of one message; a longer one is kTooLarge.
  std::uint64_t bytes_max() const { return target_ ? target_->bytes_max() : kBytesUnlimited; }
  // kInvalid, with the type of the message, its bytes and the limit.
  Error too_large(const Inbox& message) const {
    return target_ ? target_->too_large(message) : undelivered(address_.name, Delivery::kGone);
  }
  explicit operator bool() const { return target_ != nullptr; }

 private:
  Address address_;
  std::shared_ptr<Target<Inbox>> target_;
};

// A view of an actor that takes only the alternatives of Sub, each one of Inbox's: what a remote
// peer may send is a type of its own.
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

// Where one answer goes. The first one counts, those after it are dropped. Any thread.
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

// Calls its function exactly once: by operator(), or with an Error when the last copy dies.
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
  // For machinery that keeps many; null for a ReplyTo() that nobody waits for.
  const std::shared_ptr<Answerable<R>>& state() const { return state_; }

 private:
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

// The message form of a question of type Q, which names its answer: `using Reply = …`.
template <class Q>
struct Ask {
  Q question;
  ReplyTo<typename Q::Reply> reply;
};

}  // namespace tandem::runtime
