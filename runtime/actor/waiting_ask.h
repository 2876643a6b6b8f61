// The asks of one actor that wait for an answer, and when they end without one. Used by context.h
// and system.h alone.
//
// An ask costs one allocation and has no timer of its own. Asks with a deadline of the same length
// end in the order in which they were asked; so there is one queue for each length, and one timer
// per actor, set for the earliest end of all.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/actor/executor.h"
#include "runtime/actor/ref.h"

namespace tandem::actor {

class Context;

namespace detail {

// An ask whatever the type of its reply. The first of an answer and a timeout ends it.
class WaitingAsk {
 public:
  virtual ~WaitingAsk() = default;
  // These two may be called from any thread.
  virtual bool answered() const = 0;
  virtual void time_out() = 0;
  // Runs the asker's function with the reply: in the asker's turn, once, after an answer or a
  // timeout.
  virtual void hand_over(Context& cx) = 0;
};

// The actor that asks, in the incarnation in which it asks.
struct Asker {
  std::weak_ptr<Cell> cell;
  std::uint64_t life = 0;  // the cell's incarnation (system.h)
  // Gives an answered ask to the actor's queue of turns, from any thread. Nothing happens once the
  // actor, or this incarnation, has ended.
  void hear(std::shared_ptr<WaitingAsk> answered) const;
};

// An ask for a reply of type R. Owned by its ReplyTo, by Context::ask while it is being sent, and
// by the asker's queue of turns once it is answered; the deadlines hold it weakly.
template <class R>
class AskOf final : public WaitingAsk,
                    public Answerable<R>,
                    public std::enable_shared_from_this<AskOf<R>> {
 public:
  using Then = std::function<void(Context&, Result<R>)>;
  AskOf(Asker asker, std::string whom, Then then)
      : asker_(std::move(asker)), whom_(std::move(whom)), then_(std::move(then)) {}
  // The last ReplyTo is gone, so no answer can come. The asker must hear of that by an ask that is
  // alive, and this object cannot be shared any more: a new one with the same content takes over.
  ~AskOf() override {
    if (answered_) return;
    const auto last =
        std::make_shared<AskOf>(std::move(asker_), std::move(whom_), std::move(then_));
    last->answer(this->unanswered());
  }

  bool answered() const override { return answered_; }
  void answer(Result<R> reply) override {
    if (answered_.exchange(true)) return;
    reply_ = std::move(reply);
    asker_.hear(this->shared_from_this());
  }
  void time_out() override {
    answer(Error{ErrorCode::kTimedOut, "asked " + whom_ + " and had no answer in time"});
  }
  void hand_over(Context& cx) override { then_(cx, std::move(*reply_)); }

 private:
  Asker asker_;
  std::string whom_;
  Then then_;
  std::atomic<bool> answered_ = false;
  std::optional<Result<R>> reply_;  // written once, by the thread that set answered_
};

// The deadlines of one actor's open asks. Used only on the thread that runs the actor. The memory
// is bounded by a multiple of the asks that are open, however many have been answered behind one
// that waits long.
class AskDeadlines {
 public:
  void add(const std::shared_ptr<WaitingAsk>& ask, Time now, Duration deadline);
  // One of the added asks has been handed over. True: it was the last open one, and no alarm is
  // needed.
  bool handed_over();
  // Times out every ask that is due at `now`.
  void expire(Time now);
  // When to call expire() next; none: never. May be too early, where the earliest ask was answered.
  std::optional<Time> next() const;
  // Entries that take memory, for open asks and for answered ones not dropped yet.
  std::size_t entries() const { return entries_; }
  // Forgets all asks without timing them out.
  void clear();

 private:
  struct Due {
    Time at;
    std::weak_ptr<WaitingAsk> ask;
    bool waits() const;  // the ask exists and has no answer yet
  };
  void drop_answered();

  // Queues by length of deadline; each queue is in the order of its ends, and none is empty.
  std::map<Duration, std::deque<Due>> queues_;
  std::size_t entries_ = 0;  // in all queues
  std::size_t open_ = 0;     // added and not handed over yet
};

}  // namespace detail

}  // namespace tandem::actor
