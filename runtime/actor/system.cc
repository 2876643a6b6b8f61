#include "runtime/actor/system.h"

#include <algorithm>
#include <exception>

namespace tandem::runtime {
namespace detail {

// The Context of one cell; lives for one run of it.
class CellContext final : public Context {
 public:
  explicit CellContext(CellBase& cell) : cell_(cell) {}

  Time now() const override { return cell_.executor_.now(); }
  Rng& rng() override { return cell_.rng_; }
  const Address& self() const override { return cell_.address_; }

  TimerId after(Duration delay, Turn turn) override {
    return cell_.executor_.at(
        now() + delay,
        [post = turn_poster(), turn = std::move(turn)]() mutable { post(std::move(turn)); });
  }
  void cancel(TimerId timer) override { cell_.executor_.cancel(timer); }

  void monitor(const Address& watched, std::function<void(Context&, const Error&)> down) override {
    auto told = [post = turn_poster(), down = std::move(down)](const Error& reason) {
      post([down, reason](Context& cx) { down(cx, reason); });
    };
    const auto cell = cell_.system_.find(watched.name);
    // A restart is not an end: an address of any of the cell's lives means the cell.
    if (cell && (watched.incarnation.value == 0 || watched.incarnation >= cell->born_))
      cell->monitor(std::move(told));
    else
      told(Error{ErrorCode::kNotFound, watched.name + " is not running"});
  }

  void stop() override { cell_.stop_ = true; }
  void fail(Error reason) override { cell_.failure_ = std::move(reason); }

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

CellBase::CellBase(System& system, Executor& executor, Address address, SpawnOptions options)
    : system_(system),
      executor_(executor),
      born_(address.incarnation),
      address_(std::move(address)),
      options_(options),
      rng_(executor.draw_seed()) {}

void Asker::hear(std::shared_ptr<WaitingAsk> answered) const {
  if (const auto held = cell.lock()) static_cast<CellBase&>(*held).hear(std::move(answered), life);
}

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
  if (item.life != 0 && item.life != life_) return;
  if (!item.answered) return item.turn(cx);
  if (deadlines_.handed_over()) stop_alarm();
  item.answered->hand_over(cx);
}

void CellBase::expect(const std::shared_ptr<WaitingAsk>& ask, Duration deadline) {
  const Time now = executor_.now();
  deadlines_.add(ask, now, deadline);
  if (!alarm_ || now + deadline < alarm_->at) set_alarm(now + deadline);
}

void CellBase::set_alarm(Time at) {
  stop_alarm();
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
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      monitors_.push_back(std::move(down));
      return;
    }
  }
  down(end_reason_);
}

Address CellBase::address() const {
  const std::lock_guard lock(mutex_);
  return address_;
}

void CellBase::stop_from_outside() {
  post_turn([](Context& cx) { cx.stop(); }, 0);
}

void CellBase::abandon() {
  std::deque<Item> dropped;  // outlives the lock: what turns own may call back here
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    end_reason_ = Error{ErrorCode::kFailed, address_.name + " ended with its system"};
    dropped.swap(turns_);
    monitors_.clear();
  }
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
  } catch (const std::exception& error) {  // the one place where a handler's exception ends (AC-2)
    failure_ = Error{ErrorCode::kFailed, address_.name + " threw: " + error.what()};
  }
  if (failure_) {
    Error reason = std::move(*failure_);
    failure_.reset();
    if (!may_restart()) {
      finish(std::move(reason));
      return false;
    }
    destroy();
    built_ = false;
    ++life_;
    deadlines_.clear();
    stop_alarm();
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
  if (work_waits()) return true;  // it came after the drain, and wake() saw scheduled_ and left
  scheduled_ = false;
  return false;
}

bool CellBase::may_restart() {
  const Time now = executor_.now();
  std::erase_if(restarts_, [&](Time t) { return now - t > options_.restart.period; });
  if (std::ssize(restarts_) >= options_.restart.restarts_max) return false;
  restarts_.push_back(now);
  return true;
}

void CellBase::finish(Error reason) {
  const bool failed = !stop_;
  stop_alarm();
  std::vector<std::function<void(const Error&)>> monitors;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    end_reason_ = reason;
    turns_.clear();
    monitors.swap(monitors_);
  }
  destroy();
  system_.remove(*this);
  for (const auto& down : monitors) down(reason);
  if (failed && system_.on_failure_) system_.on_failure_(address_, reason);
}

}  // namespace detail

System::System(Executor& executor, std::function<void(const Address&, const Error&)> on_failure)
    : executor_(executor), on_failure_(std::move(on_failure)) {}

System::~System() {
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

}  // namespace tandem::runtime
