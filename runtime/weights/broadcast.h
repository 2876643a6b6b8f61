// The broadcast family of weights: the publisher leaves a version where the pull family leaves it,
// and also sends the version to a group of subscribers by NCCL, all at once.
//
// A broadcast is never needed for a version to be right or to arrive: a subscriber that missed it,
// joined late, is not in the group, or found a wrong checksum, fetches the version as of the pull
// family. So a broadcast waits only for the ranks of its own epoch, and for those no longer than
// each operation's deadline (WeightsConfig::stall_max).
//
// A membership epoch is one group of ranks with one NCCL communicator: the publisher is rank 0, and
// subscribers are the others. Who belongs to which epoch is decided elsewhere
// (scheduler/fleet/broadcast_group.h) and told by the calls below.
//
// Invariants (tests/runtime/weights/broadcast_test.cc, broadcast_faults_test.cc)
//   WB-1  A version that came by broadcast is offered to begin() only whole and with the checksum
//         that expect() named.
//   WB-2  An operation that outlasts its deadline, a peer's death, a wrong checksum or leave() end
//         the epoch on this rank; versions that were under way are then fetched as of the pull
//         family.
//   WB-3  Neither publish() nor a subscriber's calls wait for a broadcast.
//   WB-4  leave() of an epoch is answered by exactly one kLeft, whatever state the epoch is in, and
//         by at most NCCL's grace later (else NCCL's thread ends the process, NH-2).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/nccl_rendezvous.h"
#include "runtime/device/stream.h"
#include "runtime/wire/broadcast_place.h"

namespace tandem::weights {

// The part of WeightsConfig that kNccl needs. `nccl` and the NCCL thread that it names outlive
// publishers and subscribers.
struct Broadcasting {
  const collective::NcclProcess* nccl = nullptr;
  // The device of the staging buffers and the spare arena. kCpu is for tests with the fake library.
  device::DeviceKind device = device::DeviceKind::kCuda;
  std::string name;  // the communicators' name, for errors and records: "job/weights"
};

struct BroadcastEvent {
  enum class Kind : std::uint8_t {
    kOpened,  // publisher: the epoch has a unique id, which the others need to join
    kJoined,  // this rank's communicator has started: all ranks of the epoch are there
    kInUse,   // publisher: use(epoch) was called, and every broadcast of earlier epochs has ended
    kFailed,  // the epoch ended here by an error; leave() is still to be called
    kLeft,    // nothing of the epoch is left on this rank
  };
  Kind kind = Kind::kOpened;
  std::uint64_t epoch = 0;
  collective::NcclUniqueId unique_id;  // set for kOpened
  std::string message;  // set for kFailed: what was attempted, with whom, and why it ended
};

// One rank's part in the epochs of a job's weights. It belongs to a WeightPublisher (rank 0) or a
// WeightSubscriber (the other ranks), which destroys it. Any thread may call; no call blocks. Two
// epochs may exist side by side: the next one starts while the last one still carries broadcasts.
class BroadcastRank {
 public:
  virtual ~BroadcastRank() = default;

  // Publisher: makes the epoch's unique id and starts rank 0 of `size` ranks. kOpened, then kJoined
  // or kFailed follow.
  virtual void open(std::uint64_t epoch, int size) = 0;
  // Publisher: versions that are published from now on are broadcast in `epoch`, which has started.
  // kInUse follows when the broadcasts of the epoch before have ended.
  virtual void use(std::uint64_t epoch) = 0;

  // Subscriber: starts rank `rank`. kJoined or kFailed follow; kFailed at once where
  // check_rendezvous() refuses.
  virtual void join(const collective::NcclRendezvous& rendezvous, int rank) = 0;

  // Ends the epoch on this rank, whatever its state; epochs that this rank does not know are
  // answered too. kLeft follows.
  virtual void leave(std::uint64_t epoch, const std::string& why) = 0;

  // take_events() returns the events since its last call, in order. on_event() sets a function that
  // is called after each event, on a thread of this family; the function must not block.
  virtual std::vector<BroadcastEvent> take_events() = 0;
  virtual void on_event(std::function<void()> wake) = 0;
};

// Bytes of the device's memory that a publisher or a subscriber takes for broadcasts, beside the
// engine's own: the buckets of at most two epochs, and a subscriber's spare arena.
struct WeightsConfig;
std::uint64_t broadcast_bytes_of_publisher(const WeightsConfig& config);
std::uint64_t broadcast_bytes_of_subscriber(const WeightsConfig& config);

}  // namespace tandem::weights
