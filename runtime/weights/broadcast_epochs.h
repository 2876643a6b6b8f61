// The membership epochs that one rank takes part in, for both sides of the broadcast family: the
// start of each epoch, its queue of broadcasts, its end, and the events that are reported
// (broadcast.h). The owner moves versions in or out of the staging memory, as a BroadcastCarrier.
// Internal to runtime/weights.
//
// Threading: each epoch has a thread, on which the carrier is called. One broadcast of a rank is
// carried at a time: those of an epoch wait until all earlier epochs have carried theirs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/weights/broadcast_staging.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// One broadcast that is queued or under way.
struct BroadcastJob {
  wire::BroadcastPlace place;
  PolicyVersion version;
  std::uint64_t checksum = 0;
  std::size_t slot = 0;  // in a publisher: the slot that holds the version, pinned until over()
};

// The owner's part in a broadcast. All calls come from threads of epochs, never two carry() at
// once.
class BroadcastCarrier {
 public:
  virtual ~BroadcastCarrier() = default;
  // Called before an epoch starts on this rank, to allocate memory. An error ends the epoch.
  virtual Result<void> prepare() = 0;
  // Carries one broadcast to its end. An error ends the epoch.
  virtual Result<void> carry(collective::NcclCommunicator& communicator,
                             const BroadcastStaging& staging, const BroadcastJob& job) = 0;
  // The job was carried, or its epoch ended before that. Called once for each job.
  virtual void over(const BroadcastJob& job) = 0;
};

// `carrier` is borrowed and must outlive the epochs: their threads call it until the destructor
// ends.
class BroadcastEpochs final : public BroadcastRank {
 public:
  BroadcastEpochs(const WeightsConfig& config, BroadcastCarrier& carrier)
      : config_(config), carrier_(carrier) {}
  ~BroadcastEpochs() override;  // leaves all epochs and joins their threads

  void open(std::uint64_t epoch, int size) override;
  void use(std::uint64_t epoch) override;
  void join(const collective::NcclRendezvous& rendezvous, int rank) override;
  void leave(std::uint64_t epoch, const std::string& why) override;
  std::vector<BroadcastEvent> take_events() override;
  void on_event(std::function<void()> wake) override;

  // Publisher: queues the job in the epoch of the last use(), at the next place, and returns that
  // place; none if that epoch has not started or is ending. The job's slot then stays with the
  // caller.
  std::optional<wire::BroadcastPlace> send(BroadcastJob job);
  // Subscriber: queues the job in the epoch of its place. A job of an epoch that is unknown or
  // over, and a job that was queued before, is ignored. A gap before the place ends the epoch,
  // because the ranks no longer agree on the order.
  void receive(const BroadcastJob& job);
  // The checksum of the newest job of this version that is queued or being carried; none where
  // there is no such job.
  std::optional<std::uint64_t> checksum_on_its_way(PolicyVersion version) const;

 private:
  struct Epoch;
  using Shared = std::shared_ptr<Epoch>;

  void begin(const Shared& epoch);
  void run(Epoch& epoch);
  Result<void> prepare(Epoch& epoch, std::unique_ptr<BroadcastStaging>& staging);
  Result<void> start(Epoch& epoch);
  std::optional<BroadcastJob> next(Epoch& epoch);
  void end(Epoch& epoch, const Result<void>& outcome);
  bool ending(const Epoch& epoch) const;    // with the mutex held
  bool ends(const Epoch& epoch) const;      // takes the mutex
  bool turn_of(const Epoch& epoch) const;   // no earlier epoch has jobs; with the mutex held
  Epoch* find(std::uint64_t number) const;  // with the mutex held; null where the epoch has gone
  void tell(BroadcastEvent event);
  void join_the_finished();

  const WeightsConfig config_;
  BroadcastCarrier& carrier_;

  // Guards all fields below it, and the fields of epochs that say so. It is not held while the
  // carrier or `wake_` runs.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Shared> epochs_;
  std::uint64_t in_use_ = 0;  // the epoch of the last use()
  std::vector<BroadcastEvent> events_;
  std::function<void()> wake_;
};

}  // namespace tandem::weights
