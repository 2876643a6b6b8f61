// Two detached threads: one runs the work and makes the calls, the other is the watchdog. Both
// share the state with their owner and keep it alive: a thread that hangs in a call is left behind,
// and must find its state if the call returns after all.
//
// The call under way is a field of the state, written around each call under the mutex. The
// watchdog looks at it a few times per grace and reports a call that is overdue at two looks in a
// row, so that a machine that stood still does not accuse NCCL.
#include "runtime/collective/nccl_thread.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/log.h"

namespace tandem::collective {
namespace {

constexpr Duration kPollEvery = std::chrono::microseconds(200);  // while a poll waits for NCCL

std::string full_name(const char* function, const std::string& owner) {
  return std::string(function) + " of " + owner;
}

}  // namespace

void end_process(const StuckNcclCall& call) {
  log::critical("event=nccl_stuck call=\"{}\" seconds={:.1f} action=exit", call.name,
                seconds(steady_now() - call.since));
  ::_exit(exit_code(ErrorCode::kTimedOut));
}

struct NcclCalls::State {
  struct Call {
    const char* function = nullptr;
    const std::string* owner = nullptr;
    Time since;
    Time limit;
    bool overdue = false;   // it was past its limit at the watchdog's last look
    bool reported = false;  // to on_stuck, or about to be
    bool told = false;      // on_stuck has returned, so the destructor need not wait
  };

  explicit State(NcclThreadOptions given) : options(std::move(given)) {}
  void run_thread();
  void run_watchdog();
  std::optional<StuckNcclCall> look();  // the call to report, if any; `mutex` held

  const NcclThreadOptions options;

  std::mutex mutex;
  std::condition_variable changed;  // work was posted, or the destructor runs
  std::condition_variable closed;   // the thread has ended, or hangs and was reported
  std::deque<std::function<void(NcclCalls&)>> posted;
  std::vector<std::function<NcclPolled(NcclCalls&)>> to_poll;
  std::optional<Call> call;
  bool closing = false;
  bool ended = false;  // run_thread() has returned
};

NcclResult NcclCalls::operator()(const char* function, const std::string& owner, Time limit,
                                 const std::function<NcclResult()>& call) {
  NcclResult result = NcclResult::kSuccess;
  run(function, owner, limit, [&] { result = call(); });
  return result;
}

void NcclCalls::run(const char* function, const std::string& owner, Time limit,
                    const std::function<void()>& call) {
  {
    const std::lock_guard lock(state_.mutex);
    state_.call =
        State::Call{.function = function, .owner = &owner, .since = steady_now(), .limit = limit};
  }
  // The call is made without the mutex: the watchdog, and callers of under_way(), must get through
  // meanwhile.
  call();
  const std::lock_guard lock(state_.mutex);
  state_.call.reset();
}

void NcclCalls::report(const std::string& name, Time since) {
  state_.options.on_stuck({.name = name, .since = since});
}

Duration NcclCalls::grace() const { return state_.options.grace; }

void NcclCalls::State::run_thread() {
  NcclCalls calls(*this);
  std::vector<std::function<NcclPolled(NcclCalls&)>> polled;
  std::unique_lock lock(mutex);
  for (bool waiting = false;;) {
    const auto awake = [this] { return closing || !posted.empty() || !to_poll.empty(); };
    if (waiting) {
      changed.wait_for(lock, kPollEvery, awake);
    } else {
      changed.wait(lock, awake);
    }
    for (auto& poll : std::exchange(to_poll, {})) polled.push_back(std::move(poll));
    // Work and polls run without the mutex, so they may post themselves.
    std::deque<std::function<void(NcclCalls&)>> work = std::exchange(posted, {});
    if (closing && work.empty()) break;  // polls that have not ended are dropped
    lock.unlock();
    for (const auto& item : work) item(calls);
    waiting = false;
    std::erase_if(polled, [&](const auto& poll) {
      const NcclPolled answer = poll(calls);
      waiting = waiting || answer == NcclPolled::kWaiting;
      return answer == NcclPolled::kEnded;
    });
    // The work is destroyed without the mutex: the last reference to NCCL's memory posts when it
    // goes.
    work.clear();
    lock.lock();
  }
  ended = true;
  closed.notify_all();
}

std::optional<StuckNcclCall> NcclCalls::State::look() {
  if (!call || call->reported || steady_now() <= call->limit) return std::nullopt;
  // A machine that stood still makes every call late: the call gets one more look's time.
  if (!std::exchange(call->overdue, true)) return std::nullopt;
  call->reported = true;
  closed.notify_all();
  return StuckNcclCall{.name = full_name(call->function, *call->owner), .since = call->since};
}

void NcclCalls::State::run_watchdog() {
  std::unique_lock lock(mutex);
  while (!ended && !(closing && call && call->told)) {
    closed.wait_for(lock, options.grace / 5);
    const std::optional<StuckNcclCall> stuck = look();
    if (!stuck) continue;
    lock.unlock();
    options.on_stuck(*stuck);
    lock.lock();
    if (call && call->reported) call->told = true;
    closed.notify_all();
  }
}

NcclThread::NcclThread(NcclThreadOptions options)
    : state_(std::make_shared<NcclCalls::State>(std::move(options))) {
  std::thread([state = state_] { state->run_thread(); }).detach();
  std::thread([state = state_] { state->run_watchdog(); }).detach();
}

NcclThread::~NcclThread() {
  std::unique_lock lock(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
  // A call that hangs is reported by the watchdog; its thread is left behind.
  state_->closed.wait(lock,
                      [this] { return state_->ended || (state_->call && state_->call->told); });
}

void NcclThread::post(std::function<void(NcclCalls&)> work) {
  const std::lock_guard lock(state_->mutex);
  state_->posted.push_back(std::move(work));
  state_->changed.notify_all();
}

void NcclThread::poll(std::function<NcclPolled(NcclCalls&)> poll) {
  const std::lock_guard lock(state_->mutex);
  state_->to_poll.push_back(std::move(poll));
  state_->changed.notify_all();
}

Duration NcclThread::grace() const { return state_->options.grace; }

std::string NcclThread::under_way() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->call) return "";
  return full_name(state_->call->function, *state_->call->owner) + ", for " +
         std::to_string(seconds(steady_now() - state_->call->since)) + " s";
}

}  // namespace tandem::collective
