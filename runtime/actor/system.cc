// A cell runs one actor, one handler at a time, and stays the same over the actor's restarts.
//
// Other threads reach a cell in two ways: they put a message or a turn into its queues under
// mutex_, and wake() gives the cell to the executor if the executor has it not yet (`scheduled_`).
// All other state belongs to the thread that is inside run(). Because a cell is scheduled at most
// once at a time, no two threads are inside run() together (XR-1), and handlers need no lock.
//
// A timer or an answer carries the count of the incarnation that asked for it (`life`); take_turn()
// drops the item where that incarnation has ended, so that closures may capture the actor's `this`.
//
// Locks: handlers, monitors and actors' destructors run without a mutex of this file, since all of
// them may post to a cell. Where both are needed, the System's mutex is locked before a cell's.
#include "runtime/actor/system.h"

#include <algorithm>
#include <exception>

namespace tandem::actor {
namespace detail {

// The Context of one cell, made anew for each run().
class CellContext final : public Context {
 public:
  explicit CellContext(CellBase& cell) : cell_(cell) {}

  Time now() const override { return cell_.executor_.now(); }
  Rng& rng() override { return cell_.rng_; }
  const ActorId& self() const override { return cell_.address_; }

  // The executor's timer runs outside the actor: it only posts the turn, by the poster of this
  // incarnation.
  TimerId after(Duration delay, Turn turn) override {
    return cell_.executor_.at(
        now() + delay,
        [post = turn_poster(), turn = std::move(turn)]() mutable { post(std::move(turn)); });
  }
  void cancel(TimerId timer) override { cell_.executor_.cancel(timer); }

  void monitor(const ActorId& watched, std::function<void(Context&, const Error&)> down) override {
    auto told = [post = turn_poster(), down = std::move(down)](const Error& reason) {
      post([down, reason](Context& cx) { down(cx, reason); });
    };
    const auto cell = cell_.system_.find(watched.name);
    // A restart is not an end: any incarnation of this cell means the cell. An incarnation from
    // before born_ means an earlier cell of the same name, which has ended.
    if (cell && (watched.incarnation.value == 0 || watched.incarnation >= cell->born_))
      cell->monitor(std::move(told));
    else
      told(Error{ErrorCode::kNotFound, watched.name + " is not running"});
  }

  void stop() override { cell_.stop_ = true; }
  void fail(Error reason) override { cell_.failure_ = std::move(reason); }

  // Holds the cell weakly: a poster that some machinery keeps must not keep an ended actor.
  std::function<void(Turn)> turn_poster() override {
    auto weak = std::weak_ptr<Cell>(cell_.weak_from_this());
    return [weak, life = cell_.life_](Turn turn) {
      if (const auto cell = weak.lock())
        static_cast<CellBase&>(*cell).post_turn(std::move(turn), life);
    };
  }

 private:
  Asker asker() const override { return {cell_.weak_from_this(), cell_.life_}; }
  void expect(const std::shared_ptr<WaitingAsk>& ask, Duration deadline) override {
    cell_.expect(ask, deadline);
  }

  CellBase& cell_;
};

CellBase::CellBase(System& system, Executor& executor, ActorId address, SpawnOptions options)
    : system_(system),
      executor_(executor),
      born_(address.incarnation),
      address_(std::move(address)),
      options_(options),
      rng_(executor.draw_seed()) {}

void Asker::hear(std::shared_ptr<WaitingAsk> answered) const {
  if (const auto held = cell.lock()) static_cast<CellBase&>(*held).hear(std::move(answered), life);
}

// The lock is released first, so that a thread that starts to run the cell at once finds it free.
void CellBase::wake(std::unique_lock<std::mutex> lock) {
  if (std::exchange(scheduled_, true)) return;
  lock.unlock();
  executor_.schedule(shared_from_this());
}

void CellBase::post_turn(Turn turn, std::uint64_t life) {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  turns_.push_back({.life = life, .turn = std::move(turn)});
  wake(std::move(lock));
}

void CellBase::hear(std::shared_ptr<WaitingAsk> answered, std::uint64_t life) {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  turns_.push_back({.life = life, .answered = std::move(answered)});
  wake(std::move(lock));
}

void CellBase::take_turn(Item& item, Context& cx) {
  if (item.life != 0 && item.life != life_) return;  // the incarnation that wanted it has ended
  if (!item.answered) return item.turn(cx);
  if (deadlines_.handed_over()) stop_alarm();
  item.answered->hand_over(cx);
}

// One alarm serves all asks of the actor (waiting_ask.h); it moves only if the new ask is due
// first.
void CellBase::expect(const std::shared_ptr<WaitingAsk>& ask, Duration deadline) {
  const Time now = executor_.now();
  deadlines_.add(ask, now, deadline);
  if (!alarm_ || now + deadline < alarm_->at) set_alarm(now + deadline);
}

void CellBase::set_alarm(Time at) {
  stop_alarm();
  // The alarm rings in a turn of the actor, since deadlines_ belongs to the thread inside run().
  const TimerId timer = executor_.at(at, [weak = weak_from_this(), life = life_] {
    const auto held = weak.lock();
    auto* const cell = static_cast<CellBase*>(held.get());
    if (cell) cell->post_turn([cell](Context&) { cell->ring(); }, life);
  });
  alarm_ = {at, timer};
}

void CellBase::stop_alarm() {
  if (alarm_) executor_.cancel(alarm_->timer);
  alarm_.reset();
}

void CellBase::ring() {
  alarm_.reset();
  deadlines_.expire(executor_.now());
  if (const auto next = deadlines_.next()) set_alarm(*next);
}

void CellBase::monitor(std::function<void(const Error&)> down) {
  // `down` is called without the mutex: it posts a turn, which may be to this very cell.
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      monitors_.push_back(std::move(down));
      return;
    }
  }
  down(end_reason_);
}

ActorId CellBase::address() const {
  const std::lock_guard lock(mutex_);
  return address_;
}

void CellBase::stop_from_outside() {
  post_turn([](Context& cx) { cx.stop(); }, 0);
}

void CellBase::abandon() {
  // Destroyed after the lock is released: closures may own a ReplyTo, whose end posts to its asker.
  std::deque<Item> dropped;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    end_reason_ = Error{ErrorCode::kFailed, address_.name + " ended with its system"};
    dropped.swap(turns_);
    monitors_.clear();
  }
  built_ = true;  // a simulated executor that still holds the cell must not build the actor
  destroy();
}

bool CellBase::run(int messages_max) {
  CellContext cx(*this);
  bool more = false;
  try {
    if (!built_) {
      build();
      built_ = true;
    }
    more = drain(cx, messages_max);
  } catch (const std::exception& error) {  // AC-2: the one place that catches for all handlers
    failure_ = Error{ErrorCode::kFailed, address_.name + " threw: " + error.what()};
  }
  if (failure_) {
    Error reason = std::move(*failure_);
    failure_.reset();
    if (!may_restart()) {
      finish(std::move(reason));
      return false;
    }
    // A new incarnation, with the messages that wait (AC-3). Turns and asks of the old one are void
    // once life_ has grown. The actor itself is built by the next run().
    destroy();
    built_ = false;
    ++life_;
    deadlines_.clear();
    stop_alarm();
    // This call comes before mutex_ is locked: add() and remove() lock the System's mutex first and
    // a cell's second.
    const Incarnation next = system_.next_incarnation();
    const std::lock_guard lock(mutex_);
    address_.incarnation = next;
    more = true;
  } else if (stop_) {
    finish(Error{ErrorCode::kFailed, address_.name + " stopped"});
    return false;
  }
  if (more) return true;
  const std::lock_guard lock(mutex_);
  // Work that came after drain() had looked: wake() found scheduled_ set and left it to this check.
  if (work_waits()) return true;
  scheduled_ = false;
  return false;
}

// A sliding window: only restarts within the last `period` count.
bool CellBase::may_restart() {
  const Time now = executor_.now();
  std::erase_if(restarts_, [&](Time t) { return now - t > options_.restart.period; });
  if (std::ssize(restarts_) >= options_.restart.restarts_max) return false;
  restarts_.push_back(now);
  return true;
}

// scheduled_ stays set: an ended cell is never given to the executor again. Monitors are
// called when the name is free, so that an actor of the same name can be spawned in response, and
// after the failure handler, so that a monitor can tell a failure from a stop.
void CellBase::finish(Error reason) {
  const bool failed = !stop_;
  stop_alarm();
  std::deque<Item> dropped;  // destroyed after the lock is released, as in abandon()
  std::vector<std::function<void(const Error&)>> monitors;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    end_reason_ = reason;
    dropped.swap(turns_);
    monitors.swap(monitors_);
  }
  destroy();
  system_.remove(*this);
  if (failed && system_.on_failure_) system_.on_failure_(address_, reason);
  for (const auto& down : monitors) down(reason);
}

}  // namespace detail

System::System(Executor& executor, std::function<void(const ActorId&, const Error&)> on_failure)
    : executor_(executor), on_failure_(std::move(on_failure)) {}

System::~System() {
  // The cells are abandoned without the mutex: an actor's destructor may call back into this
  // System.
  std::map<std::string, std::shared_ptr<detail::CellBase>> cells;
  {
    const std::lock_guard lock(mutex_);
    cells.swap(cells_);
  }
  for (const auto& [name, cell] : cells) cell->abandon();
}

void System::stop(const std::string& name) {
  if (const auto cell = find(name)) cell->stop_from_outside();
}

bool System::alive(const std::string& name) const { return find(name) != nullptr; }

Incarnation System::next_incarnation() {
  const std::lock_guard lock(mutex_);
  return Incarnation{++incarnations_};
}

void System::add(std::shared_ptr<detail::CellBase> cell) {
  const std::lock_guard lock(mutex_);
  const bool fresh = cells_.emplace(cell->address().name, cell).second;
  CHECK(fresh);
}

void System::remove(const detail::CellBase& cell) {
  const std::lock_guard lock(mutex_);
  cells_.erase(cell.address().name);
}

std::shared_ptr<detail::CellBase> System::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = cells_.find(name);
  return it == cells_.end() ? nullptr : it->second;
}

}  // namespace tandem::actor
