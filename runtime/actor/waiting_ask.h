// The asks of one actor that wait for an answer, and when they end without one. Used by context.h
// and system.h alone.
//
// An ask costs one allocation, and no timer of its own: asks with the same deadline end in the
// order in which they were asked, so each length of deadline has a queue, and one timer is set for
// the earliest end of all.
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

namespace tandem::runtime {

class Context;

namespace detail {

class WaitingAsk {
 public:
  virtual ~WaitingAsk() = default;
  virtual bool answered() const = 0;  // any thread, as
  virtual void time_out() = 0;
  virtual void hand_over(Context& cx) = 0;  // in the asker's turn, once it is answered
};

// The actor that asks, in the life in which it asks.
struct Asker {
  std::weak_ptr<Cell> cell;
  std::uint64_t life = 0;
  void hear(std::shared_ptr<WaitingAsk> answered) const;  // any thread; nothing once it has ended
};

template <class R>
class AskOf final : public WaitingAsk,
                    public Answerable<R>,
                    public std::enable_shared_from_this<AskOf<R>> {
 public:
  using Then = std::function<void(Context&, Result<R>)>;
  AskOf(Asker asker, std::string whom, Then then)
      : asker_(std::move(asker)), whom_(std::move(whom)), then_(std::move(then)) {}
  // Nobody can answer any more.
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
  std::optional<Result<R>> reply_;  // written once, by whoever set answered_
};

// Only on the thread that runs the actor.
class AskDeadlines {
 public:
  void add(const std::shared_ptr<WaitingAsk>& ask, Time now, Duration deadline);
  bool handed_over();  // one of those added; whether it was the last one open
  // Times out what is due.
  void expire(Time now);
  std::optional<Time> next() const;                 // when to expire(), at the latest
  std::size_t entries() const { return entries_; }  // that take memory
  void clear();

 private:
  struct Due {
    Time at;
    std::weak_ptr<WaitingAsk> ask;  // gone or answered: of no interest any more
    bool waits() const;
  };
  void drop_answered();

  std::map<Duration, std::deque<Due>> queues_;  // none is empty, and each front waits or did
  std::size_t entries_ = 0;                     // in all queues
  std::size_t open_ = 0;                        // added and not handed over
};

}  // namespace detail

}  // namespace tandem::runtime
