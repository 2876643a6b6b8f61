// A System holds the actors of one process, or of one simulated process: it spawns them on an
// executor, knows them by name, restarts them by their policy and tells monitors of their end.
//
// An actor lies in a cell, which outlives the actor's incarnations and owns the mailbox, so that a
// Ref stays valid over a restart. `life`, in the code, counts the incarnations of one cell.
//
//   System system(executor, on_failure);
//   Ref<Counter::Inbox> counter = system.spawn<Counter>("counter", [] {
//     return std::make_unique<Counter>();
//   });
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

namespace tandem::actor {

// At most `restarts_max` restarts within any `period`; 0: the first failure ends the actor.
struct RestartPolicy {
  int restarts_max = 0;
  Duration period = std::chrono::seconds(5);
};

struct SpawnOptions {
  std::size_t mailbox_max = 65536;  // messages that wait; turns do not count
  RestartPolicy restart = {};
};

class System;

namespace detail {

class CellContext;

// The part of a cell that does not depend on the actor's type: turns, asks, restarts and the end.
class CellBase : public Cell {
 public:
  CellBase(System& system, Executor& executor, ActorId address, SpawnOptions options);
  // The executor's entry: handles messages, then restarts or ends the actor where a handler asked
  // for that, and decides whether the cell stays runnable.
  bool run(int messages_max) override;
  // These may be called from any thread. Turns and answers for another incarnation than the
  // one that runs are dropped; `life` 0 stands for any incarnation.
  void post_turn(Turn turn, std::uint64_t life);
  void hear(std::shared_ptr<WaitingAsk> answered, std::uint64_t life);
  // `down` runs once, on the thread that ends the actor; at once if the actor has ended.
  void monitor(std::function<void(const Error&)> down);
  void stop_from_outside();
  // Destroys the actor without telling monitors: its System is being destroyed, and the executor
  // has stopped.
  void abandon();
  ActorId address() const;

 protected:
  // Either a turn or an ask that has been answered, for one incarnation (0: for any).
  struct Item {
    std::uint64_t life = 0;
    Turn turn;
    std::shared_ptr<WaitingAsk> answered;
  };
  // Makes the actor: before its first message, and after a failure that the policy lets pass.
  virtual void build() = 0;
  // Destroys the actor, and the messages that wait if the cell has ended.
  virtual void destroy() = 0;
  // Runs up to `messages_max` turns or messages, turns first. True: more may wait. Stops early when
  // a handler has called stop() or fail().
  virtual bool drain(Context& cx, int messages_max) = 0;
  virtual bool work_waits() const = 0;  // caller holds mutex_
  // Makes the cell runnable. The caller has just put work where drain() finds it, under `lock`,
  // which is released before the executor is called.
  void wake(std::unique_lock<std::mutex> lock);
  // Runs the item if its incarnation is the one that runs.
  void take_turn(Item& item, Context& cx);

  friend class CellContext;
  System& system_;
  Executor& executor_;
  const Incarnation born_;  // the first incarnation of this cell
  // Written under mutex_ by the thread that runs the cell, at a restart: that thread reads it
  // without the mutex, all others with it.
  ActorId address_;
  const SpawnOptions options_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool scheduled_ = false;  // the executor has the cell, or is running it
  bool ended_ = false;
  std::deque<Item> turns_;
  std::vector<std::function<void(const Error&)>> monitors_;
  Error end_reason_;

  // Touched only by the thread that runs the cell.
  std::uint64_t life_ = 1;        // grows by one with each restart
  bool built_ = false;            // the actor of this incarnation exists
  bool stop_ = false;             // stop() was called
  std::optional<Error> failure_;  // fail() was called, or a handler threw
  std::vector<Time> restarts_;    // within the period of the policy
  Rng rng_;
  AskDeadlines deadlines_;  // deadlines of this incarnation's asks
  struct Alarm {
    Time at;
    TimerId timer;
  };
  std::optional<Alarm> alarm_;  // the one timer for all asks, set for the earliest deadline

 private:
  // Asks: `expect` registers one with its deadline, and the alarm calls `ring`, which times out
  // those that are due and sets the alarm for the next.
  void expect(const std::shared_ptr<WaitingAsk>& ask, Duration deadline);
  void set_alarm(Time at);
  void stop_alarm();
  void ring();
  bool may_restart();  // counts the restart if so
  // Ends the actor for good: destroys it, frees its name, and tells monitors and on_failure.
  void finish(Error reason);
};

// The cell of an actor of type A, with its typed mailbox.

template <Actor A>
class TypedCell final : public CellBase, public Target<typename A::Inbox> {
 public:
  using Inbox = typename A::Inbox;
  TypedCell(System& system, Executor& executor, ActorId address, SpawnOptions options,
            std::function<std::unique_ptr<A>()> factory)
      : CellBase(system, executor, std::move(address), options), factory_(std::move(factory)) {}

  // AC-1: the limit is checked under the mutex that guards the queue.
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
    std::deque<Inbox> dropped;  // destroyed after the lock, as in CellBase::abandon
    const std::lock_guard lock(mutex_);
    if (ended_) dropped.swap(messages_);
  }
  bool drain(Context& cx, int messages_max) override {
    for (int n = 0; n < messages_max && !stop_ && !failure_; ++n) {
      // The mutex is held to take an item out and never while a handler runs: a handler may post to
      // this very cell. Turns come first, so that a full mailbox delays neither answers nor timers.
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
      executor_.handled();
    }
    return true;
  }

  bool work_waits() const override { return !turns_.empty() || !messages_.empty(); }

  const std::function<std::unique_ptr<A>()> factory_;
  std::unique_ptr<A> actor_;    // null before build() and after destroy()
  std::deque<Inbox> messages_;  // guarded by mutex_
};

}  // namespace detail

// All members may be called from any thread, inside handlers and outside.
class System {
 public:
  // `on_failure` is called, on the thread that ran the actor, for every actor that ended by a
  // failure and was not restarted, before its monitors; it may be empty in tests. The executor must
  // outlive the System, and must have stopped before the System is destroyed: the destructor
  // destroys the actors. Refs may outlive the System and answer kGone then.
  System(Executor& executor, std::function<void(const ActorId&, const Error&)> on_failure);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  // Starts an actor. `factory` makes the object, on an executor thread: soon after this call, and
  // again at each restart. A name may be used again when its actor has ended; two actors of one
  // name are CHECKed.
  template <Actor A>
  Ref<typename A::Inbox> spawn(std::string name, std::function<std::unique_ptr<A>()> factory,
                               SpawnOptions options = {}) {
    ActorId address{std::move(name), next_incarnation()};
    auto cell = std::make_shared<detail::TypedCell<A>>(*this, executor_, address, options,
                                                       std::move(factory));
    add(cell);
    cell->post_turn([](Context&) {}, 0);  // builds the actor before its first message
    return Ref<typename A::Inbox>(address, cell);
  }

  // Asks the actor to end and returns at once; nothing where the name is unknown. The actor handles
  // its stop as a turn, before the messages that wait.
  void stop(const std::string& name);
  bool alive(const std::string& name) const;  // spawned, and not ended for good
  Executor& executor() { return executor_; }

 private:
  friend class detail::CellBase;
  friend class detail::CellContext;
  // Incarnations are counted over all actors of the System, from 1.
  Incarnation next_incarnation();
  void add(std::shared_ptr<detail::CellBase> cell);
  void remove(const detail::CellBase& cell);
  std::shared_ptr<detail::CellBase> find(const std::string& name) const;

  Executor& executor_;
  const std::function<void(const ActorId&, const Error&)> on_failure_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<detail::CellBase>> cells_;  // guarded by mutex_
  std::uint64_t incarnations_ = 0;                                  // guarded by mutex_
};

// Asks from outside any actor (a thread of HTTP, main) and waits for the answer, at most `deadline`
// of the machine's time. Errors are those of Context::ask. Never call it in a handler: it would
// block a thread of the executor, and the answer may need that thread.
template <class Q, class Inbox>
Result<typename Q::Reply> ask_and_wait(const Ref<Inbox>& whom, Q question, Duration deadline);

}  // namespace tandem::actor

#include "runtime/actor/ask_and_wait.h"
