// The callers' side of a communicator. Requests are queued under the mutex for NCCL's thread, which
// carries them out (nccl_state.cc). Each wait ends by the caller's own clock, at the deadline plus
// the thread's grace, so that a thread that hangs holds no caller up (NC-1); the wait's error then
// names the call in which it hangs.
#include "runtime/collective/nccl_communicator.h"

#include <utility>

#include "runtime/collective/collective.h"
#include "runtime/collective/nccl_memory.h"
#include "runtime/collective/nccl_operation.h"
#include "runtime/collective/nccl_question.h"
#include "runtime/collective/nccl_state.h"

namespace tandem::runtime {
NcclCommunicator::State::State(const NcclProcess& process, const NcclEpoch& epoch, Time deadline)
    : process_(process),
      epoch_(epoch),
      label_(epoch.name + ", epoch " + std::to_string(epoch.epoch) + ", rank " +
             std::to_string(epoch.rank) + " of " + std::to_string(epoch.size)),
      started_at_(steady_now()),
      start_deadline_(deadline) {}

Result<NcclTicket> NcclCommunicator::State::submit(NcclOperation operation) {
  if (auto right = check_operation(operation, epoch_); !right) return right.error();
  auto made = std::make_shared<Operation>();
  made->submitted_at = steady_now();
  made->deadline = made->submitted_at + operation.timeout;
  made->operation = std::move(operation);
  made->communicator = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    if (error_) return *error_;
    if (finish_by_) return refusal(describe_operation(made->operation), label_ + " finishes");
    if (under_way_ == kNcclOperationsMax)
      return refusal(describe_operation(made->operation),
                     label_ + " has " + std::to_string(under_way_) + " operations under way");
    made->sequence = ++sequence_;
    made->record = process_.records->add({.communicator = epoch_.name,
                                          .epoch = epoch_.epoch,
                                          .rank = epoch_.rank,
                                          .sequence = made->sequence,
                                          .kind = kind_of(made->operation),
                                          .label = made->operation.label,
                                          .bytes = bytes_of(made->operation),
                                          .peers = peers_of(made->operation),
                                          .enqueued_at = made->submitted_at});
    ++under_way_;
    submitted_.push_back(made);
  }
  thread().post([](NcclCalls&) {});  // wakes the thread, which polls this communicator
  return NcclTicket(std::move(made));
}

void NcclCommunicator::State::fail(Error error) {
  const std::lock_guard lock(mutex_);
  // NC-2: the first error counts, and none comes after an orderly end.
  if (!error_ && !closed_) error_ = std::move(error);
}

void NcclCommunicator::State::ask_to_finish(Time deadline) {
  const std::lock_guard lock(mutex_);
  if (!finish_by_) finish_by_ = deadline;
}

std::optional<Result<void>> NcclCommunicator::State::outcome_of(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  return operation.outcome;
}

Error NcclCommunicator::State::hung(const std::string& what) {
  const std::string call = thread().under_way();
  return {.code = ErrorCode::kTimedOut,
          .message = "timed out in " + what + " of " + label_ + ", because NCCL's thread " +
                     (call.empty() ? "did not answer" : "hangs in " + call),
          .where = {},
          .help = {}};
}

Result<void> NcclCommunicator::State::wait_for(const Operation& operation) {
  std::unique_lock lock(mutex_);
  const auto known = [&] { return operation.outcome.has_value(); };
  if (changed_.wait_until(lock, steady_point(operation.deadline + thread().grace()), known))
    return *operation.outcome;
  const Error error = hung(describe_operation(operation.operation));
  // The communicator is over as well: NCCL's thread aborts it if it ever comes back.
  if (!error_) error_ = error;
  return error;
}

std::optional<Result<void>> NcclCommunicator::State::started() {
  const std::lock_guard lock(mutex_);
  if (error_) return Result<void>(*error_);
  if (!ready_) return std::nullopt;
  return Result<void>();
}

Result<void> NcclCommunicator::State::wait_started() {
  std::unique_lock lock(mutex_);
  const auto known = [&] { return ready_ || error_; };
  if (!changed_.wait_until(lock, steady_point(start_deadline_ + thread().grace()), known))
    error_ = hung("the start");
  if (error_) return *error_;
  return {};
}

bool NcclCommunicator::State::closes_by(Time deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, steady_point(deadline), [&] { return closed_; });
}

Result<void> NcclCommunicator::State::wait_closed(Time deadline) {
  if (!closes_by(deadline)) fail(hung("the end"));
  if (const auto error = failure()) return *error;
  return {};
}

std::optional<Error> NcclCommunicator::State::failure() {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::uint64_t NcclTicket::sequence() const { return parts_->sequence; }

std::optional<Result<void>> NcclTicket::outcome() const {
  return parts_->communicator->outcome_of(*parts_);
}

Result<void> NcclTicket::wait() const { return parts_->communicator->wait_for(*parts_); }

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::start(const NcclProcess& process,
                                                                  const NcclEpoch& epoch,
                                                                  Duration timeout) {
  // NC-5: refused before NCCL sees it.
  if (epoch.size < 1 || epoch.size > kRanksMax || epoch.rank < 0 || epoch.rank >= epoch.size)
    return refusal("cannot start " + epoch.name, "there is no rank " + std::to_string(epoch.rank) +
                                                     " of " + std::to_string(epoch.size));
  auto state = std::make_shared<State>(process, epoch, steady_now() + timeout);
  // The thread holds the state until the communicator is closed, also if this object ends before.
  process.thread->poll([state](NcclCalls& calls) { return state->poll(calls); });
  return std::unique_ptr<NcclCommunicator>(new NcclCommunicator(std::move(state)));
}

NcclCommunicator::~NcclCommunicator() {
  abort("its owner left it");
  state_->closes_by(steady_now() + state_->thread().grace());
}

std::optional<Result<void>> NcclCommunicator::started() const { return state_->started(); }

Result<void> NcclCommunicator::wait_started() const { return state_->wait_started(); }

Result<NcclTicket> NcclCommunicator::submit(NcclOperation operation) {
  return state_->submit(std::move(operation));
}

void NcclCommunicator::abort(const std::string& why) {
  state_->fail({.code = ErrorCode::kFailed,
                .message = state_->label() + " was aborted: " + why,
                .where = {},
                .help = {}});
  state_->thread().post([](NcclCalls&) {});
}

Result<void> NcclCommunicator::finish(Duration timeout) {
  const Time deadline = steady_now() + timeout;
  state_->ask_to_finish(deadline);
  state_->thread().post([](NcclCalls&) {});
  return state_->wait_closed(deadline + state_->thread().grace());
}

std::optional<Error> NcclCommunicator::failure() const { return state_->failure(); }

Result<NcclUniqueId> make_nccl_unique_id(const NcclProcess& process, Duration timeout) {
  return ask_nccl<NcclUniqueId>(
      process, "ncclGetUniqueId", timeout,
      [api = process.api](NcclCalls& calls, Time deadline) -> Result<NcclUniqueId> {
        NcclUniqueId id;
        const std::string owner = "this process";
        const NcclResult result =
            calls("ncclGetUniqueId", owner, deadline, [&] { return api.get_unique_id(&id); });
        if (result == NcclResult::kSuccess) return id;
        return nccl_failure(api, "ncclGetUniqueId", result, nullptr, "cannot make a meeting place");
      });
}

}  // namespace tandem::runtime
