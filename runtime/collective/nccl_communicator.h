// A communicator: one membership epoch of a group of ranks that exchange bytes by NCCL. It is
// started, carries operations, and ends by finish() or an abort. A new membership is a new
// communicator; two may exist side by side, so that the next starts while the last still works.
//
// Not responsible for: who is a member, and telling the others to abort (the control plane carries
// both); sums (shard_exchange.h makes them, in rank order); checksums of the bytes that arrive.
// NCCL does not check that the ranks ask for the same thing: where they do not, an operation never
// ends, or fills in garbage.
//
// Invariants
//   NC-1  No call outlasts its deadline by more than the thread's grace, whatever NCCL does.
//   NC-2  After an error that ends the communicator each further call returns that error at once.
//   NC-3  When an operation's outcome is known the device no longer touches its memory, unless
//         the error says that NCCL's thread hangs, which is about to end the process (NH-2).
//   NC-4  An operation that succeeded has the root's or sender's bytes; one that failed is named in
//         its error, with the ranks that it waited for as far as they are known.
//   NC-5  A request that can be seen to be wrong is refused (kInvalid) without any effect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/collective/nccl_api.h"
#include "runtime/collective/nccl_operation.h"
#include "runtime/collective/nccl_process.h"

namespace tandem::collective {

// Makes the meeting place of a new communicator: one rank calls this and all ranks are given the
// result. The process that made it must run until the communicator has started on every rank.
// Errors: kTimedOut, kFailed.
Result<NcclUniqueId> make_nccl_unique_id(const NcclProcess& process, Duration timeout);

class CommunicatorState;    // nccl_state.h
struct SubmittedOperation;  // nccl_state.h

// An operation that was submitted. Any thread; copies refer to the same operation.
class NcclTicket {
 public:
  std::uint64_t sequence() const;
  std::optional<Result<void>> outcome() const;  // nothing: under way
  Result<void> wait() const;                    // until the operation's deadline

 private:
  friend class NcclCommunicator;
  explicit NcclTicket(std::shared_ptr<SubmittedOperation> submitted)
      : submitted_(std::move(submitted)) {}

  std::shared_ptr<SubmittedOperation> submitted_;
};

// One rank's end of a communicator. Any thread may call. All work is done by NCCL's thread, so that
// a call here never waits for NCCL itself (NC-1).
class NcclCommunicator {
 public:
  // Begins the start, together with the other ranks, and returns. Operations may be submitted at
  // once; they wait for the start. kInvalid: no such rank or size.
  static Result<std::unique_ptr<NcclCommunicator>> start(const NcclProcess& process,
                                                         const NcclEpoch& epoch, Duration timeout);
  // Aborts the communicator if it has not finished, and waits for the abort for at most the
  // thread's grace.
  ~NcclCommunicator();

  std::optional<Result<void>> started() const;  // nothing: not yet
  Result<void> wait_started() const;            // until the start's deadline

  // Queues an operation. All ranks submit the same operations in the same order, with a receive for
  // each send. kInvalid (NC-5): the operation makes no sense, kNcclOperationsMax are under way, or
  // finish() was called.
  Result<NcclTicket> submit(NcclOperation operation);

  // Ends the communicator on this rank: operations under way fail with `why`. Returns at once. When
  // a rank has ended, all others must be told to abort, because NCCL itself may not notice.
  void abort(const std::string& why);

  // Waits for the operations that were submitted, then leaves the group in order. All ranks must
  // finish.
  Result<void> finish(Duration timeout);

  std::optional<Error> failure() const;  // the error that ended it (NC-2)

 private:
  explicit NcclCommunicator(std::shared_ptr<CommunicatorState> state) : state_(std::move(state)) {}

  std::shared_ptr<CommunicatorState> state_;
};

}  // namespace tandem::collective
