// The actors of one process (or of one simulated process): spawns them on an executor, knows them
// by name, restarts them by their policy, tells monitors of their end.
//
// Invariants
//   AC-1  A mailbox never holds more than its limit of messages.
//   AC-2  A failure is never swallowed: an exception or fail() restarts the actor by its policy, or
//         ends it and tells every monitor and the system's failure handler.
//   AC-3  A restarted actor has a new incarnation and keeps the messages that were waiting.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/executor.h"
#include "runtime/actor/ref.h"

namespace tandem::runtime {

// At most `restarts_max` restarts within `period`; 0 = never restarted.
struct RestartPolicy {
  int restarts_max = 0;
  Duration period = std::chrono::seconds(5);
};

struct SpawnOptions {
  std::size_t mailbox_max = 65536;
  RestartPolicy restart = {};
};

class System;

namespace detail {

class CellContext;

// Everything of a cell that does not depend on the actor's type.
class CellBase : public Cell {
 public:
  CellBase(System& system, Executor& executor, Address address, SpawnOptions options);
  bool run(int messages_max) override;
  void post_turn(Turn turn, std::uint64_t life);
  void hear(std::shared_ptr<WaitingAsk> answered, std::uint64_t life);
  void monitor(std::function<void(const Error&)> down);
  void stop_from_outside();
  void abandon();  // the system goes: the actor is destroyed, nobody is told
  Address address() const;

 protected:
  struct Item {              // a turn of one life, or an ask of it that is answered
    std::uint64_t life = 0;  // 0: any
    Turn turn;
    std::shared_ptr<WaitingAsk> answered;
  };
  virtual void build() = 0;    // makes the actor; called before its first message and on restart
  virtual void destroy() = 0;  // destroys it
  // Moves up to `messages_max` typed messages or turns out and runs them; see Cell<A>::drain.
  virtual bool drain(Context& cx, int messages_max) = 0;
  virtual bool work_waits() const = 0;  // caller holds mutex_
  // Something was put where drain() finds it, under `lock`, which is released.
  void wake(std::unique_lock<std::mutex> lock);
  void take_turn(Item& item, Context& cx);

  friend class CellContext;
  System& system_;
  Executor& executor_;
  const Incarnation born_;  // its first life
  Address address_;         // guarded by mutex_ against restarts
  const SpawnOptions options_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool scheduled_ = false;
  bool ended_ = false;
  std::deque<Item> turns_;
  std::vector<std::function<void(const Error&)>> monitors_;
  Error end_reason_;

  // Touched only by the thread that runs the cell.
  std::uint64_t life_ = 1;
  bool built_ = false;
  bool stop_ = false;
  std::optional<Error> failure_;
  std::vector<Time> restarts_;
  Rng rng_;
  AskDeadlines deadlines_;  // of this life
  struct Alarm {
    Time at;
    TimerId timer;
  };
  std::optional<Alarm> alarm_;  // for the first of deadlines_

 private:
  void expect(const std::shared_ptr<WaitingAsk>& ask, Duration deadline);
  void set_alarm(Time at);
  void stop_alarm();
  void ring();
  bool may_restart();
  void finish(Error reason);
};

template <Actor A>
class TypedCell final : public CellBase, public Target<typename A::Inbox> {
 public:
  using Inbox = typename A::Inbox;
  TypedCell(System& system, Executor& executor, Address address, SpawnOptions options,
            std::function<std::unique_ptr<A>()> factory)
      : CellBase(system, executor, std::move(address), options), factory_(std::move(factory)) {}

  Delivery post(Inbox message) override {
    std::unique_lock lock(mutex_);
    if (ended_) return Delivery::kGone;
    if (messages_.size() >= options_.mailbox_max) return Delivery::kFull;
    messages_.push_back(std::move(message));
    wake(std::move(lock));
    return Delivery::kAccepted;
  }

 private:
  void build() override { actor_ = factory_(); }
  void destroy() override {
    actor_.reset();
    const std::lock_guard lock(mutex_);
    if (ended_) messages_.clear();
  }
  bool drain(Context& cx, int messages_max) override {
    for (int n = 0; n < messages_max && !stop_ && !failure_; ++n) {
      std::unique_lock lock(mutex_);
      if (!turns_.empty()) {
        Item item = std::move(turns_.front());
        turns_.pop_front();
        lock.unlock();
        take_turn(item, cx);
      } else if (!messages_.empty()) {
        Inbox message = std::move(messages_.front());
        messages_.pop_front();
        lock.unlock();
        deliver(*actor_, cx, std::move(message));
      } else {
        return false;
      }
    }
    return true;
  }

  bool work_waits() const override { return !turns_.empty() || !messages_.empty(); }

  const std::function<std::unique_ptr<A>()> factory_;
  std::unique_ptr<A> actor_;
  std::deque<Inbox> messages_;  // guarded by mutex_
};

}  // namespace detail

class System {
 public:
  // `on_failure` hears of every actor that ended by failure and was not restarted; it may be empty
  // in tests. The executor must outlive the system, and must have stopped before it is destroyed:
  // the destructor destroys the actors, and Refs that outlive it find them gone.
  System(Executor& executor, std::function<void(const Address&, const Error&)> on_failure);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  // `factory` makes the actor: once now, and again at each restart. Names are unique while alive.
  template <Actor A>
  Ref<typename A::Inbox> spawn(std::string name, std::function<std::unique_ptr<A>()> factory,
                               SpawnOptions options = {}) {
    Address address{std::move(name), next_incarnation()};
    auto cell = std::make_shared<detail::TypedCell<A>>(*this, executor_, address, options,
                                                       std::move(factory));
    add(cell);
    cell->post_turn([](Context&) {}, 0);  // builds the actor before its first message
    return Ref<typename A::Inbox>(address, cell);
  }

  void stop(const std::string& name);  // asks the actor to end; returns at once
  bool alive(const std::string& name) const;
  Executor& executor() { return executor_; }

 private:
  friend class detail::CellBase;
  friend class detail::CellContext;
  Incarnation next_incarnation();
  void add(std::shared_ptr<detail::CellBase> cell);
  void remove(const detail::CellBase& cell);
  std::shared_ptr<detail::CellBase> find(const std::string& name) const;

  Executor& executor_;
  const std::function<void(const Address&, const Error&)> on_failure_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<detail::CellBase>> cells_;  // guarded by mutex_
  std::uint64_t incarnations_ = 0;                                  // guarded by mutex_
};

// Asks from outside any actor (an HTTP handler, main) and waits: never call it in a handler.
template <class Q, class Inbox>
Result<typename Q::Reply> ask_and_wait(const Ref<Inbox>& whom, Q question, Duration deadline);

}  // namespace tandem::runtime

#include "runtime/actor/ask_and_wait.h"
