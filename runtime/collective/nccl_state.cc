// A communicator as a small state machine: starting, ready, finishing or aborting, closed. NCCL's
// thread drives it by poll(), which never waits. In each step the machine asks NCCL for the
// communicator's state and events for theirs, compares deadlines, and hands the next operation to
// NCCL once the call of the last one has come through, as non-blocking communicators demand.
// Callers only queue requests and wait, by their own clock, for outcomes.
//
// A deadline is the only sure sign of a lost peer: NCCL may never report one. After any error the
// communicator is aborted. NC-3: an outcome is given only when the device has passed the
// operation's last event, because until then a kernel may still write into the memory; a stream
// that never gets there is reported, which ends the process.
#include "runtime/collective/nccl_state.h"

#include <algorithm>
#include <utility>

#include "runtime/collective/nccl_memory.h"
#include "runtime/collective/nccl_operation.h"

namespace tandem::collective {

bool CommunicatorState::broken() {
  const std::lock_guard lock(mutex_);
  return shared_.error.has_value();
}

void CommunicatorState::take_requests() {
  const std::lock_guard lock(mutex_);
  for (Shared& operation : std::exchange(shared_.submitted, {}))
    waiting_.push_back(std::move(operation));
}

NcclPolled CommunicatorState::poll(NcclCalls& calls) {
  take_requests();
  // An error may come from this machine, from a caller's abort(), or from a wait that gave up.
  if (phase_ < Phase::kAborting && broken()) tear_down(calls);
  switch (phase_) {
    case Phase::kNew:
      begin_start(calls);
      break;
    case Phase::kStarting:
      look_at_start(calls);
      break;
    case Phase::kReady:
      look_at_operations(calls);
      break;
    case Phase::kFinishing:
      look_at_finish(calls);
      break;
    case Phase::kAborting:
      look_at_abort(calls);
      break;
    case Phase::kClosed:
      return NcclPolled::kEnded;
  }
  if (phase_ == Phase::kClosed) return NcclPolled::kEnded;
  return phase_ == Phase::kReady && !operations_left() && !broken() ? NcclPolled::kIdle
                                                                    : NcclPolled::kWaiting;
}

void CommunicatorState::begin_step(NcclKind kind) {
  const Time now = steady_now();
  step_ = process_.records->add({.communicator = epoch_.name,
                                 .epoch = epoch_.epoch,
                                 .rank = epoch_.rank,
                                 .kind = kind,
                                 .state = NcclState::kEntered,
                                 .enqueued_at = now,
                                 .started_at = now});
}

void CommunicatorState::end_step(NcclState state) {
  // No operation is under way when an abort follows the ready phase.
  if (step_) process_.records->change(*std::exchange(step_, std::nullopt), state, steady_now());
}

void CommunicatorState::begin_start(NcclCalls& calls) {
  begin_step(NcclKind::kStart);
  phase_ = Phase::kStarting;
  NcclConfig config;
  // A start that is begun late still gets the time that one call takes.
  const NcclResult result =
      calls("ncclCommInitRankConfig", label_, std::max(start_deadline_, calls.soon()), [&] {
        return process_.api.comm_init_rank_config(&comm_, epoch_.size, epoch_.unique_id,
                                                  epoch_.rank, &config);
      });
  if (result != NcclResult::kSuccess && result != NcclResult::kInProgress)
    fail(nccl_failure(process_.api, "ncclCommInitRankConfig", result, comm_,
                      "cannot start " + label_));
}

NcclResult CommunicatorState::async_state(NcclCalls& calls) {
  NcclResult state = NcclResult::kInternalError;
  const NcclResult asked = calls("ncclCommGetAsyncError", label_, calls.soon(),
                                 [&] { return process_.api.comm_get_async_error(comm_, &state); });
  return asked == NcclResult::kSuccess ? state : asked;
}

void CommunicatorState::look_at_start(NcclCalls& calls) {
  const NcclResult state = async_state(calls);
  if (state == NcclResult::kSuccess) {
    // One registration per poll, each once the one before has come through.
    if (registered_.size() < epoch_.memory.size()) return register_next(calls);
    end_step(NcclState::kDone);
    phase_ = Phase::kReady;
    const std::lock_guard lock(mutex_);
    shared_.ready = true;
    changed_.notify_all();
  } else if (state != NcclResult::kInProgress) {
    fail(nccl_failure(process_.api,
                      registered_.empty() ? "ncclCommInitRankConfig" : "ncclCommRegister", state,
                      comm_, "cannot start " + label_));
  } else if (steady_now() > start_deadline_) {
    fail({.code = ErrorCode::kTimedOut,
          .message = "timed out after " + text_of_seconds(steady_now() - started_at_) +
                     " in the start of " + label_ + ": not all ranks came",
          .where = {},
          .help = {}});
  }
}

// NCCL may write the handle while the call is in progress, so the vector must not move its
// elements: hence the reserve().
void CommunicatorState::register_next(NcclCalls& calls) {
  registered_.reserve(epoch_.memory.size());
  const NcclMemory& memory = *epoch_.memory[registered_.size()];
  void*& handle = registered_.emplace_back(nullptr);
  const NcclResult result = calls("ncclCommRegister", label_, calls.soon(), [&] {
    return process_.api.comm_register(comm_, memory.data(), memory.size(), &handle);
  });
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) return;
  fail(nccl_failure(process_.api, "ncclCommRegister", result, comm_,
                    "cannot register " + std::to_string(memory.size()) + " bytes in the start of " +
                        label_ + " (NCCL_LOCAL_REGISTER=0 on all nodes does without)"));
}

// There is no handle where NCCL was told not to register (NCCL_LOCAL_REGISTER=0).
void CommunicatorState::deregister_last(NcclCalls& calls) {
  void* const handle = registered_.back();
  registered_.pop_back();
  if (handle == nullptr) return;
  const NcclResult result = calls("ncclCommDeregister", label_, calls.soon(),
                                  [&] { return process_.api.comm_deregister(comm_, handle); });
  if (result != NcclResult::kSuccess && result != NcclResult::kInProgress)
    fail(
        nccl_failure(process_.api, "ncclCommDeregister", result, comm_, "cannot finish " + label_));
}

void* CommunicatorState::record_event(NcclCalls& calls, void* stream) {
  void* event = nullptr;
  calls.run("cudaEventRecord", label_, calls.soon(), [&] {
    event = process_.streams.create_event();
    process_.streams.record_event(event, stream);
  });
  return event;
}

bool CommunicatorState::event_done(NcclCalls& calls, void* event) {
  bool done = false;
  calls.run("cudaEventQuery", label_, calls.soon(),
            [&] { done = process_.streams.event_done(event); });
  return done;
}

void CommunicatorState::release_events(NcclCalls& calls, SubmittedOperation& operation) {
  calls.run("cudaEventDestroy", label_, calls.soon(), [&] {
    for (void** event : {&operation.begin, &operation.end})
      if (void* held = std::exchange(*event, nullptr)) process_.streams.destroy_event(held);
  });
}

void CommunicatorState::settle(NcclCalls& calls, SubmittedOperation& operation,
                               Result<void> outcome, NcclState state) {
  release_events(calls, operation);
  process_.records->change(operation.record, state, steady_now());
  const std::lock_guard lock(mutex_);
  operation.outcome = std::move(outcome);
  --shared_.under_way;
  changed_.notify_all();
}

// Makes the calls of one operation; `function` is the last that was made, for an error. A group
// that was opened is always closed, because NCCL keeps an open group for the thread.
NcclResult CommunicatorState::call_nccl(NcclCalls& calls, const SubmittedOperation& operation,
                                        const char*& function) {
  const NcclApi& api = process_.api;
  const std::vector<NcclTransfer>& transfers = operation.operation.transfers;
  const auto fine = [](NcclResult result) {
    return result == NcclResult::kSuccess || result == NcclResult::kInProgress;
  };
  const auto make = [&](const char* called, const std::function<NcclResult()>& call) {
    function = called;
    return calls(called, label_, calls.soon(), call);
  };
  const auto one = [&](const NcclTransfer& t) {
    void* const stream = operation.operation.stream;
    if (t.kind == NcclKind::kSend)
      return make("ncclSend", [&] {
        return api.send(t.memory, t.bytes, NcclType::kUint8, t.peer, comm_, stream);
      });
    if (t.kind == NcclKind::kReceive)
      return make("ncclRecv", [&] {
        return api.receive(t.memory, t.bytes, NcclType::kUint8, t.peer, comm_, stream);
      });
    if (t.kind == NcclKind::kAllReduce)
      return make("ncclAllReduce", [&] {
        return api.all_reduce(t.memory, t.memory, t.bytes / sizeof(float), NcclType::kFloat32,
                              NcclSum::kSum, comm_, stream);
      });
    return make("ncclBroadcast", [&] {
      return api.broadcast(t.memory, t.memory, t.bytes, NcclType::kUint8, t.peer, comm_, stream);
    });
  };
  if (transfers.size() == 1) return one(transfers.front());
  if (const NcclResult opened = make("ncclGroupStart", api.group_start); !fine(opened))
    return opened;
  NcclResult result = NcclResult::kSuccess;
  for (std::size_t i = 0; i < transfers.size() && fine(result); ++i) result = one(transfers[i]);
  // The first failure counts; ncclGroupEnd must not hide it.
  const char* const failed = function;
  const NcclResult ended = make("ncclGroupEnd", api.group_end);
  if (fine(result)) return ended;
  function = failed;
  return result;
}

void CommunicatorState::enter(NcclCalls& calls, const Shared& operation) {
  operation->begin = record_event(calls, operation->operation.stream);
  process_.records->change(operation->record, NcclState::kEntered, steady_now());
  const char* function = nullptr;
  const NcclResult result = call_nccl(calls, *operation, function);
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) {
    entered_.push_back(operation);
    entering_ = operation;
    return;
  }
  Error error =
      nccl_failure(process_.api, function, result, comm_,
                   "cannot begin " + describe_operation(operation->operation) + ", operation " +
                       std::to_string(operation->sequence) + " of " + label_);
  // An invalid argument has no effect and fails this operation alone. All other results end the
  // communicator, and so does an invalid argument that NCCL keeps as the communicator's state.
  if (result == NcclResult::kInvalidArgument && async_state(calls) == NcclResult::kSuccess)
    return settle(calls, *operation, std::move(error), NcclState::kFailed);
  entered_.push_back(operation);
  culprit_ = operation->sequence;
  fail(std::move(error));
}

void CommunicatorState::look_at_operations(NcclCalls& calls) {
  look_at_events(calls);
  if (operations_left()) {
    const NcclResult state = async_state(calls);
    if (state == NcclResult::kSuccess && entering_) {
      // Only now is the operation's work on its stream, so only now does an event stand behind it.
      entering_->end = record_event(calls, entering_->operation.stream);
      entering_ = nullptr;
    } else if (state != NcclResult::kSuccess && state != NcclResult::kInProgress) {
      const Shared& first = entered_.empty() ? waiting_.front() : entered_.front();
      culprit_ = first->sequence;
      return fail(nccl_failure(process_.api, "ncclCommGetAsyncError", state, comm_,
                               "failed in " + describe_operation(first->operation) +
                                   ", operation " + std::to_string(first->sequence) + " of " +
                                   label_ + ", waiting for " +
                                   awaited_ranks(first->operation, epoch_.rank)));
    }
  }
  look_at_deadlines();
  if (!entering_ && !waiting_.empty() && !broken()) {
    const Shared next = std::move(waiting_.front());
    waiting_.pop_front();
    enter(calls, next);
  }
  const auto finish_by = [this] {
    const std::lock_guard lock(mutex_);
    return shared_.submitted.empty() ? shared_.finish_by : std::nullopt;
  }();
  // Operations that were submitted before finish() are all carried out first.
  if (!finish_by || operations_left() || broken()) return;
  begin_step(NcclKind::kFinish);
  phase_ = Phase::kFinishing;
}

void CommunicatorState::finalize(NcclCalls& calls) {
  finalized_ = true;
  const NcclResult result = calls("ncclCommFinalize", label_, calls.soon(),
                                  [&] { return process_.api.comm_finalize(comm_); });
  if (result != NcclResult::kSuccess && result != NcclResult::kInProgress)
    fail(nccl_failure(process_.api, "ncclCommFinalize", result, comm_, "cannot finish " + label_));
}

void CommunicatorState::look_at_events(NcclCalls& calls) {
  std::erase_if(entered_, [&](const Shared& operation) {
    if (!operation->started && event_done(calls, operation->begin)) {
      operation->started = true;
      process_.records->change(operation->record, NcclState::kStarted, steady_now());
    }
    if (operation->end == nullptr || !event_done(calls, operation->end)) return false;
    settle(calls, *operation, {}, NcclState::kDone);
    return true;
  });
}

void CommunicatorState::look_at_deadlines() {
  const Time now = steady_now();
  const auto late = [now](const Shared& operation) { return now > operation->deadline; };
  // An operation that NCCL has is the better one to blame: the waiting ones wait for it.
  auto found = std::ranges::find_if(entered_, late);
  const bool entered = found != entered_.end();
  if (!entered && std::ranges::none_of(waiting_, late)) return;
  const Shared& operation = entered ? *found : *std::ranges::find_if(waiting_, late);
  culprit_ = operation->sequence;
  const std::string waits = awaited_ranks(operation->operation, epoch_.rank);
  fail({.code = ErrorCode::kTimedOut,
        .message = "timed out after " + text_of_seconds(now - operation->submitted_at) + " in " +
                   describe_operation(operation->operation) + ", operation " +
                   std::to_string(operation->sequence) + " of " + label_ + ", " +
                   (operation->started ? "which began and waits for " + waits
                    : entered          ? "which its stream has not come to"
                                       : "which was not handed to NCCL behind those before it"),
        .where = {},
        .help = {}});
}

void CommunicatorState::look_at_finish(NcclCalls& calls) {
  const NcclResult state = async_state(calls);
  if (state == NcclResult::kSuccess) {
    // The order is deregister, finalize, destroy, with one call per poll.
    if (!registered_.empty()) return deregister_last(calls);
    if (!finalized_) return finalize(calls);
    const NcclResult result = calls("ncclCommDestroy", label_, calls.soon(), [&] {
      return process_.api.comm_destroy(std::exchange(comm_, nullptr));
    });
    if (result != NcclResult::kSuccess)
      fail(nccl_failure(process_.api, "ncclCommDestroy", result, nullptr,
                        "cannot finish " + label_));
    return close(calls);
  }
  const Time deadline = [this] {
    const std::lock_guard lock(mutex_);
    return *shared_.finish_by;
  }();
  if (state != NcclResult::kInProgress) {
    fail(nccl_failure(process_.api, "ncclCommFinalize", state, comm_, "cannot finish " + label_));
  } else if (steady_now() > deadline) {
    fail({.code = ErrorCode::kTimedOut,
          .message = "timed out in the end of " + label_ + ": not all ranks finish",
          .where = {},
          .help = {}});
  }
}

void CommunicatorState::tear_down(NcclCalls& calls) {
  phase_ = Phase::kAborting;
  abort_began_ = steady_now();
  abort_limit_ = calls.soon();
  end_step(NcclState::kFailed);  // the start or the finish that was under way
  begin_step(NcclKind::kAbort);
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();  // wakes threads that wait for the start
  }
  if (comm_ != nullptr)
    calls("ncclCommAbort", label_, abort_limit_,
          [&] { return process_.api.comm_abort(std::exchange(comm_, nullptr)); });
  // An operation whose call did not come through may have put work on its stream all the same, so
  // its end is marked here.
  for (const Shared& operation : entered_)
    if (operation->end == nullptr)
      operation->end = record_event(calls, operation->operation.stream);
}

void CommunicatorState::look_at_abort(NcclCalls& calls) {
  // NC-3: the abort makes kernels end, but only the streams say that they have.
  const bool drained = std::ranges::all_of(
      entered_, [&](const Shared& operation) { return event_done(calls, operation->end); });
  if (drained) return close(calls);
  if (steady_now() <= abort_limit_) return;
  calls.report("the stream of " + label_ + " after ncclCommAbort", abort_began_);
  // The events are leaked, because the stream still uses them.
  for (const Shared& operation : entered_) operation->begin = operation->end = nullptr;
  close(calls);
}

void CommunicatorState::close(NcclCalls& calls) {
  take_requests();
  const auto error = failure();
  for (const Shared& operation : std::exchange(entered_, {})) {
    const bool culprit = operation->sequence == culprit_;
    settle(calls, *operation, *error, culprit ? NcclState::kFailed : NcclState::kAborted);
  }
  for (const Shared& operation : std::exchange(waiting_, {})) {
    const bool culprit = operation->sequence == culprit_;
    settle(calls, *operation, *error, culprit ? NcclState::kFailed : NcclState::kAborted);
  }
  entering_ = nullptr;
  epoch_.memory.clear();  // the registrations have ended, by finish or by abort
  end_step(NcclState::kDone);
  phase_ = Phase::kClosed;
  const std::lock_guard lock(mutex_);
  shared_.closed = true;
  changed_.notify_all();
}

}  // namespace tandem::collective
