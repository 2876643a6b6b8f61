// One mutex guards the queue of runnable cells and the timers, and is never held while a cell or a
// timer runs. A closure or a cell is also destroyed without the mutex: the end of an object that it
// owns may schedule a cell or cancel a timer here.
#include "runtime/actor/threaded_executor.h"

#include <utility>

namespace tandem::actor {
namespace {

// How many messages of one actor are handled before the next runnable actor has its turn: an actor
// with a full mailbox delays the others by so many handlers at most.
constexpr int kMessagesPerTurn = 256;

// The executor that the calling thread belongs to, and whether the thread runs a timer's function.
thread_local const ThreadedExecutor* executor_of_thread = nullptr;
thread_local bool runs_timer = false;
thread_local int number_of_thread = 0;

}  // namespace

ThreadedExecutor::ThreadedExecutor(int threads, std::uint64_t seed, OnTurn on_turn)
    : on_turn_(std::move(on_turn)), rng_(seed) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

ThreadedExecutor::~ThreadedExecutor() { stop(); }

void ThreadedExecutor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_->notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  // Declared before the lock, and so destroyed after it is released.
  std::deque<std::shared_ptr<Cell>> runnable;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers;
  const std::lock_guard lock(mutex_);
  runnable.swap(runnable_);
  timers.swap(timers_);
}

void ThreadedExecutor::schedule(std::shared_ptr<Cell> cell) {
  std::unique_lock lock(mutex_);
  if (stopping_) return;
  runnable_.push_back(std::move(cell));
  // A timer's function ends at once, and its thread then takes the cell itself.
  const bool is_next = executor_of_thread == this && runs_timer && runnable_.size() == 1;
  if (idle_ == 0 || is_next) return;
  // The thread that wakes may run at once, in this thread's place: it would wait for the mutex. The
  // cell may end this executor before the call returns, hence the copy.
  const std::shared_ptr<std::condition_variable> changed = changed_;
  lock.unlock();
  changed->notify_one();
}

TimerId ThreadedExecutor::at(Time when, std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  const TimerId id{++timer_last_};
  if (stopping_) return id;
  const auto place = timers_.emplace(std::pair(when, id), std::move(function)).first;
  timer_times_.emplace(id, when);
  // An actor's timer that is due is for itself (Context::after): the thread that runs the actor
  // comes to it next, and no other thread could run it before.
  const bool is_next = executor_of_thread == this && when <= now();
  // Idle threads sleep until the earliest timer: only a new earliest one concerns them.
  if (place == timers_.begin() && idle_ > 0 && !is_next) changed_->notify_one();
  return id;
}

void ThreadedExecutor::cancel(TimerId timer) {
  std::function<void()> dropped;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return;
  const auto place = timers_.find({it->second, timer});
  dropped = std::move(place->second);
  timers_.erase(place);
  timer_times_.erase(it);
}

void ThreadedExecutor::handled() { tell(number_of_thread, Step::kHandled); }

std::uint64_t ThreadedExecutor::draw_seed() {
  const std::lock_guard lock(mutex_);
  return rng_.next();
}

void ThreadedExecutor::work(int thread) {
  executor_of_thread = this;
  number_of_thread = thread;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!timers_.empty() && timers_.begin()->first.first <= now()) {
      auto due = timers_.extract(timers_.begin());
      timer_times_.erase(due.key().second);
      lock.unlock();
      tell(thread, Step::kBegins);
      runs_timer = true;
      due.mapped()();
      runs_timer = false;
      due.mapped() = nullptr;  // destroys the closure while the mutex is free
      tell(thread, Step::kFree);
      lock.lock();
    } else if (!runnable_.empty()) {
      std::shared_ptr<Cell> cell = std::move(runnable_.front());
      runnable_.pop_front();
      lock.unlock();
      tell(thread, Step::kBegins);
      const bool more = cell->run(kMessagesPerTurn);
      tell(thread, Step::kFree);
      lock.lock();
      // The cell goes to the end of the queue: runnable actors take turns.
      if (more && !stopping_) runnable_.push_back(std::move(cell));
      if (cell) {  // this thread may be the last owner, and the actor's destructor may call back
        lock.unlock();
        cell.reset();
        lock.lock();
      }
    } else {
      ++idle_;
      if (timers_.empty())
        changed_->wait(lock);
      else
        changed_->wait_for(lock, timers_.begin()->first.first - now());
      --idle_;
    }
  }
}

}  // namespace tandem::actor
