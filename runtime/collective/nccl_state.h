// One communicator as NCCL's thread drives it and its callers wait for it. Internal to
// runtime/collective; the contract is that of nccl_communicator.h.
//
// The functions for any thread, and those that only wait, are in nccl_requests.cc; nccl_state.cc
// has the part of NCCL's thread. Shared by the communicator's owner, its tickets and
// the thread's poll.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collective/nccl_operation.h"
#include "runtime/collective/nccl_process.h"

namespace tandem::collective {

class CommunicatorState;

// One operation, from its submit() to its outcome.
struct SubmittedOperation {
  NcclOperation operation;
  std::uint64_t sequence = 0;
  NcclRecords::Id record = 0;
  Time submitted_at;
  Time deadline;
  std::shared_ptr<CommunicatorState> communicator;

  // Only NCCL's thread uses these.
  void* begin = nullptr;  // events before and behind its work in the stream; null: none recorded
  void* end = nullptr;
  bool started = false;  // the stream has passed `begin`

  std::optional<Result<void>> outcome;  // the communicator's mutex guards it
};

class CommunicatorState : public std::enable_shared_from_this<CommunicatorState> {
 public:
  CommunicatorState(const NcclProcess& process, const NcclEpoch& epoch, Time deadline);

  // Any thread may call these.
  Result<std::shared_ptr<SubmittedOperation>> submit(NcclOperation operation);
  void fail(Error error);  // only the first counts
  void ask_to_finish(Time deadline);
  std::optional<Result<void>> outcome_of(const SubmittedOperation& operation);
  Result<void> wait_for(const SubmittedOperation& operation);
  std::optional<Result<void>> started();
  Result<void> wait_started();
  Result<void> wait_closed(Time deadline);
  bool closes_by(Time deadline);
  std::optional<Error> failure();
  const std::string& label() const { return label_; }
  NcclThread& thread() const { return *process_.thread; }

  // Only NCCL's thread calls these. One step of the machine in nccl_state.cc; never waits for
  // another rank.
  NcclPolled poll(NcclCalls& calls);

 private:
  // kNew, kStarting and kReady follow each other. Then comes kFinishing after ask_to_finish(), or
  // kAborting after any error; both end in kClosed.
  enum class Phase { kNew, kStarting, kReady, kFinishing, kAborting, kClosed };
  using Shared = std::shared_ptr<SubmittedOperation>;

  // poll() calls one of these in each phase.
  void begin_start(NcclCalls& calls);
  void look_at_start(NcclCalls& calls);
  void register_next(NcclCalls& calls);
  void deregister_last(NcclCalls& calls);
  void look_at_operations(NcclCalls& calls);
  void look_at_events(NcclCalls& calls);
  void look_at_deadlines();
  void look_at_finish(NcclCalls& calls);
  void finalize(NcclCalls& calls);
  void look_at_abort(NcclCalls& calls);
  // Starts an operation by calling NCCL, between two events on its stream.
  void enter(NcclCalls& calls, const Shared& operation);
  NcclResult call_nccl(NcclCalls& calls, const SubmittedOperation& operation,
                       const char*& function);
  // NCCL's word on the last call that was in progress, or the communicator's failure.
  NcclResult async_state(NcclCalls& calls);
  void* record_event(NcclCalls& calls, void* stream);
  bool event_done(NcclCalls& calls, void* event);
  void release_events(NcclCalls& calls, SubmittedOperation& operation);
  // Begins the abort after an error.
  void tear_down(NcclCalls& calls);
  // Gives an operation its outcome, and wakes the callers that wait for it.
  void settle(NcclCalls& calls, SubmittedOperation& operation, Result<void> outcome,
              NcclState state);
  void close(NcclCalls& calls);
  void begin_step(NcclKind kind);  // the start, the finish or the abort, for the records
  void end_step(NcclState state);
  bool operations_left() const { return !waiting_.empty() || !entered_.empty(); }
  bool broken();                        // an error has ended it
  void take_requests();                 // moves shared_.submitted to waiting_
  Error hung(const std::string& what);  // for a wait that ended before NCCL's thread answered

  const NcclProcess process_;
  NcclEpoch epoch_;          // its memory is NCCL's thread's, the rest does not change
  const std::string label_;  // "job/weights, epoch 3, rank 1 of 4"
  const Time started_at_;
  const Time start_deadline_;

  // Only NCCL's thread uses these.
  Phase phase_ = Phase::kNew;
  NcclApi::Comm comm_ = nullptr;
  std::vector<void*> registered_;   // handles, of epoch_.memory in its order
  bool finalized_ = false;          // ncclCommFinalize was called
  std::deque<Shared> waiting_;      // not handed to NCCL yet: the call before is in progress
  std::vector<Shared> entered_;     // handed to NCCL, oldest first
  Shared entering_;                 // the one whose call of NCCL is still in progress
  std::uint64_t culprit_ = 0;       // the sequence of the operation that ended the communicator
  Time abort_began_, abort_limit_;  // from ncclCommAbort to the end of the streams' work
  std::optional<NcclRecords::Id> step_;  // the record of the start, finish or abort under way

  // Guards shared_ between callers and NCCL's thread. It is never held during a call of NCCL.
  std::mutex mutex_;
  std::condition_variable changed_;
  struct SharedState {
    std::deque<Shared> submitted;  // not yet taken by NCCL's thread
    std::size_t under_way = 0;     // submitted and without an outcome
    std::uint64_t sequence = 0;
    bool ready = false;
    bool closed = false;
    std::optional<Time> finish_by;
    std::optional<Error> error;
  };
  SharedState shared_;
};

}  // namespace tandem::collective
