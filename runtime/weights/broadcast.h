// The broadcast family of weights: besides leaving a version where the pull family leaves it, the
// publisher sends the version to a group of subscribers by NCCL, all at once.
//
// A broadcast is never needed for a version to be right or to arrive: whoever missed it, joined
// late, is not in the group, or found a wrong checksum, fetches the version as of the pull family.
// So a broadcast waits for nobody but the ranks of its own epoch, and those no longer than each
// operation's deadline (WeightsConfig::stall_max).
//
// A membership epoch is one group of ranks with one NCCL communicator: the publisher is rank 0, and
// subscribers are the others. Who belongs to which epoch is decided elsewhere
// (scheduler/fleet/broadcast_group.h) and told by the calls below.
//
// Invariants (tests/runtime/weights/broadcast_test.cc, broadcast_faults_test.cc)
//   WB-1  A version that came by broadcast is offered to begin() only whole and with the checksum
//         that expect() named.
//   WB-2  An operation that outlasts its deadline, a peer's death, a wrong checksum or leave() end
//         the epoch on this rank; what was under way is then fetched as of the pull family.
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

namespace tandem::runtime {

// What WeightsConfig needs for kNccl. The NCCL thread that `nccl` names, and `nccl` itself, outlive
// publishers and subscribers.
struct Broadcasting {
  const NcclProcess* nccl = nullptr;
  // Where staging buffers and the spare arena lie. kCpu is for tests with the fake library.
  DeviceKind device = DeviceKind::kCuda;
  std::string name;  // of the communicators, for errors and records: "job/weights"
};

struct BroadcastEvent {
  enum class Kind : std::uint8_t {
    kOpened,  // publisher: the epoch has a unique id, which the others need to join
    kJoined,  // this rank's communicator has started: all ranks of the epoch are there
    kInUse,   // publisher: every broadcast of earlier epochs has ended, after use(epoch)
    kFailed,  // the epoch ended here by an error; leave() is still to be called
    kLeft,    // nothing of the epoch is left on this rank
  };
  Kind kind = Kind::kOpened;
  std::uint64_t epoch = 0;
  NcclUniqueId unique_id;  // of kOpened
  std::string message;     // of kFailed: what was attempted, with whom, and why it ended
};

// One rank's part in the epochs of a job's weights. It belongs to a WeightPublisher (rank 0) or a
// WeightSubscriber (the other ranks) and lives as long. Any thread may call; no call blocks. Two
// epochs may live side by side: the next one starts while the last one still carries broadcasts.
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
  virtual void join(const NcclRendezvous& rendezvous, int rank) = 0;

  // Ends the epoch here, whatever it is at; unknown epochs too. kLeft follows.
  virtual void leave(std::uint64_t epoch, const std::string& why) = 0;

  // What has happened since the last call, in order. `wake` of on_event() is called on a thread of
  // this family, after each event, and must not block.
  virtual std::vector<BroadcastEvent> take_events() = 0;
  virtual void on_event(std::function<void()> wake) = 0;
};

// The device's memory that a publisher or a subscriber takes for broadcasts, beside what an engine
// has: at most two epochs' buckets, and a subscriber's spare arena.
struct WeightsConfig;
std::uint64_t broadcast_bytes_of_publisher(const WeightsConfig& config);
std::uint64_t broadcast_bytes_of_subscriber(const WeightsConfig& config);

}  // namespace tandem::runtime
