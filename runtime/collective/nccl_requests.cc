// The callers' side of a communicator's state. Requests are queued under the mutex for NCCL's
// thread, which carries them out (nccl_state.cc). Each wait ends by the caller's own clock, at the
// deadline plus the thread's grace, so that a thread that hangs holds no caller up (NC-1); the
// wait's error then names the call in which it hangs.
#include <utility>

#include "runtime/collective/nccl_operation.h"
#include "runtime/collective/nccl_question.h"
#include "runtime/collective/nccl_state.h"

namespace tandem::collective {

CommunicatorState::CommunicatorState(const NcclProcess& process, const NcclEpoch& epoch,
                                     Time deadline)
    : process_(process),
      epoch_(epoch),
      label_(epoch.name + ", epoch " + std::to_string(epoch.epoch) + ", rank " +
             std::to_string(epoch.rank) + " of " + std::to_string(epoch.size)),
      started_at_(steady_now()),
      start_deadline_(deadline) {}

Result<std::shared_ptr<SubmittedOperation>> CommunicatorState::submit(NcclOperation operation) {
  if (auto right = check_operation(operation, epoch_); !right) return right.error();
  auto made = std::make_shared<SubmittedOperation>();
  made->submitted_at = steady_now();
  made->deadline = made->submitted_at + operation.timeout;
  made->operation = std::move(operation);
  made->communicator = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    if (shared_.error) return *shared_.error;
    if (shared_.finish_by)
      return refusal(describe_operation(made->operation), label_ + " finishes");
    if (shared_.under_way == kNcclOperationsMax)
      return refusal(
          describe_operation(made->operation),
          label_ + " has " + std::to_string(shared_.under_way) + " operations under way");
    made->sequence = ++shared_.sequence;
    made->record = process_.records->add({.communicator = epoch_.name,
                                          .epoch = epoch_.epoch,
                                          .rank = epoch_.rank,
                                          .sequence = made->sequence,
                                          .kind = kind_of(made->operation),
                                          .label = made->operation.label,
                                          .bytes = bytes_of(made->operation),
                                          .peers = peers_of(made->operation),
                                          .enqueued_at = made->submitted_at});
    ++shared_.under_way;
    shared_.submitted.push_back(made);
  }
  thread().post([](NcclCalls&) {});  // wakes the thread, which polls this communicator
  return made;
}

void CommunicatorState::fail(Error error) {
  const std::lock_guard lock(mutex_);
  // NC-2: the first error counts, and none comes after an orderly end.
  if (!shared_.error && !shared_.closed) shared_.error = std::move(error);
}

void CommunicatorState::ask_to_finish(Time deadline) {
  const std::lock_guard lock(mutex_);
  if (!shared_.finish_by) shared_.finish_by = deadline;
}

std::optional<Result<void>> CommunicatorState::outcome_of(const SubmittedOperation& operation) {
  const std::lock_guard lock(mutex_);
  return operation.outcome;
}

Error CommunicatorState::hung(const std::string& what) {
  const std::string call = thread().under_way();
  return {.code = ErrorCode::kTimedOut,
          .message = "timed out in " + what + " of " + label_ + ", because NCCL's thread " +
                     (call.empty() ? "did not answer" : "hangs in " + call),
          .where = {},
          .help = {}};
}

Result<void> CommunicatorState::wait_for(const SubmittedOperation& operation) {
  std::unique_lock lock(mutex_);
  const auto known = [&] { return operation.outcome.has_value(); };
  if (changed_.wait_until(lock, steady_point(operation.deadline + thread().grace()), known))
    return *operation.outcome;
  const Error error = hung(describe_operation(operation.operation));
  // The communicator is over as well: NCCL's thread aborts it if it ever comes back.
  if (!shared_.error) shared_.error = error;
  return error;
}

std::optional<Result<void>> CommunicatorState::started() {
  const std::lock_guard lock(mutex_);
  if (shared_.error) return Result<void>(*shared_.error);
  if (!shared_.ready) return std::nullopt;
  return Result<void>();
}

Result<void> CommunicatorState::wait_started() {
  std::unique_lock lock(mutex_);
  const auto known = [&] { return shared_.ready || shared_.error; };
  if (!changed_.wait_until(lock, steady_point(start_deadline_ + thread().grace()), known))
    shared_.error = hung("the start");
  if (shared_.error) return *shared_.error;
  return {};
}

bool CommunicatorState::closes_by(Time deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, steady_point(deadline), [&] { return shared_.closed; });
}

Result<void> CommunicatorState::wait_closed(Time deadline) {
  if (!closes_by(deadline)) fail(hung("the end"));
  if (const auto error = failure()) return *error;
  return {};
}

std::optional<Error> CommunicatorState::failure() {
  const std::lock_guard lock(mutex_);
  return shared_.error;
}

}  // namespace tandem::collective
