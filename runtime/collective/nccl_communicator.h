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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/collective/nccl_api.h"
#include "runtime/collective/nccl_records.h"
#include "runtime/collective/nccl_thread.h"

namespace tandem::runtime {

// The functions of runtime/device's CudaModule for events, which mark places in a stream's work.
// Called on NCCL's thread alone.
struct NcclStreamFunctions {
  void* (*create_event)() = nullptr;
  void (*record_event)(void* event, void* stream) = nullptr;
  bool (*event_done)(void* event) = nullptr;
  void (*destroy_event)(void* event) = nullptr;
};

// Shared by the communicators of one process. `thread` is not owned, and outlives them and their
// tickets.
struct NcclProcess {
  NcclApi api;
  NcclStreamFunctions streams;
  std::shared_ptr<NcclRecords> records = std::make_shared<NcclRecords>();
  NcclThread* thread = nullptr;
};

// Makes the meeting place of a new communicator: one rank calls this and all ranks are given the
// result. The process that made it must run until the communicator has started on every rank.
// Errors: kTimedOut, kFailed.
Result<NcclUniqueId> make_nccl_unique_id(const NcclProcess& process, Duration timeout);

class NcclMemory;  // nccl_memory.h

struct NcclEpoch {
  std::uint64_t epoch = 0;  // of the membership; the same on all ranks
  NcclUniqueId unique_id;
  int rank = 0;
  int size = 1;
  std::string name;  // "job/weights", for errors and records
  // Registered when the communicator starts, kept until it has ended. All ranks give as much.
  std::vector<std::shared_ptr<NcclMemory>> memory = {};
};

// One broadcast, send or receive of this rank, as part of an operation.
struct NcclTransfer {
  NcclKind kind = NcclKind::kBroadcast;  // or kSend, kReceive
  std::byte* memory = nullptr;           // a GPU's; of a broadcast's root and of a send: only read
  std::size_t bytes = 0;
  int peer = 0;  // the other rank; of a broadcast the root
};

inline constexpr std::size_t kNcclTransfersMax = 4096;  // of one operation
inline constexpr std::size_t kNcclOperationsMax = 256;  // of one communicator, under way

// One request to NCCL. Several transfers are one group: they progress together, in no order. The
// memory must stay until the outcome is known (NC-3).
struct NcclOperation {
  std::string label;  // the caller's words for errors and records: "version 7, bucket 2"
  std::vector<NcclTransfer> transfers;
  void* stream = nullptr;  // the transfers take place in this stream's order
  Duration timeout{};      // from submit() to its end
};

class NcclCommunicator;

// An operation that was submitted. Any thread; copies refer to the same operation.
class NcclTicket {
 public:
  std::uint64_t sequence() const;
  std::optional<Result<void>> outcome() const;  // nothing: under way
  Result<void> wait() const;                    // until the operation's deadline

 private:
  friend class NcclCommunicator;
  struct Parts;
  explicit NcclTicket(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<Parts> parts_;
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
  friend class NcclTicket;
  class State;
  explicit NcclCommunicator(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace tandem::runtime
