// The membership epochs that one rank takes part in, as both sides of the broadcast family share
// them: each epoch's start, its queue of broadcasts, its end, and what is told of them
// (broadcast.h). How a version gets in or out is its owner's, a BroadcastCarrier.
// Internal to runtime/weights.
//
// Threading: each epoch has a thread, on which the carrier is called. Broadcasts of one rank are
// carried one at a time: those of an epoch wait until all earlier epochs have carried theirs.
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
#include "runtime/weights/weights.h"

namespace tandem::runtime {

struct BroadcastJob {
  BroadcastPlace place;
  PolicyVersion version;
  std::uint64_t checksum = 0;
  std::size_t slot = 0;  // a publisher's, pinned
};

class BroadcastCarrier {
 public:
  virtual ~BroadcastCarrier() = default;
  // Before an epoch starts here: memory.
  virtual Result<void> prepare() = 0;
  // One broadcast, to its end. An error ends the epoch.
  virtual Result<void> carry(NcclCommunicator& communicator, const BroadcastStaging& staging,
                             const BroadcastJob& job) = 0;
  // The job was carried, or its epoch ended before it could be. Once for each job.
  virtual void over(const BroadcastJob& job) = 0;
};

class BroadcastEpochs final : public BroadcastRank {
 public:
  BroadcastEpochs(const WeightsConfig& config, BroadcastCarrier& carrier)
      : config_(config), carrier_(carrier) {}
  ~BroadcastEpochs() override;  // leaves all of them

  void open(std::uint64_t epoch, int size) override;
  void use(std::uint64_t epoch) override;
  void join(const NcclRendezvous& rendezvous, int rank) override;
  void leave(std::uint64_t epoch, const std::string& why) override;
  std::vector<BroadcastEvent> take_events() override;
  void on_event(std::function<void()> wake) override;

  // Publisher: queues it in the epoch of the last use(), at the next place, which is returned; none
  // if that epoch is not at work.
  std::optional<BroadcastPlace> send(BroadcastJob job);
  // Subscriber: queues it in its place's epoch. What is unknown, over or was queued before is left
  // alone; a gap before the place ends the epoch.
  void receive(const BroadcastJob& job);
  // Of the newest job of this version that is queued or being carried.
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
  bool ending(const Epoch& epoch) const;  // with the mutex held
  bool ends(const Epoch& epoch) const;    // takes it
  bool turn_of(const Epoch& epoch) const;
  Epoch* find(std::uint64_t number) const;
  void tell(BroadcastEvent event);
  void join_the_finished();

  const WeightsConfig config_;
  BroadcastCarrier& carrier_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Shared> epochs_;
  std::uint64_t in_use_ = 0;  // of the last use()
  std::vector<BroadcastEvent> events_;
  std::function<void()> wake_;
};

}  // namespace tandem::runtime
