// A publisher and subscribers of weights that are broadcast, all in this process, each with a
// thread of NCCL of its own, on the fake library; the test plays the control plane.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/device/cuda_module.h"
#include "runtime/weights/weight_family.h"
#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::weights {

inline constexpr std::uint64_t kGroupArenaBytes = 40'007;  // in three buckets
inline constexpr std::uint64_t kGroupBucketBytes = 16'384;
// All ranks are on one GPU here.
inline const int kGpuIsShared = ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                                ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

inline const collective::FakeNccl& the_fake_nccl() {
  static const auto opened = collective::open_fake_nccl();
  return opened;
}

inline PolicyVersion v(std::int64_t number) { return {number}; }

inline std::vector<std::byte> weights_of(std::int64_t version, int lineage = 0) {
  return collective::bytes_of_rank(lineage, static_cast<int>(version), kGroupArenaBytes);
}

// Looks again and again until it is so, or `patience` is over.
inline bool comes_true(const std::function<bool()>& is_so,
                       Duration patience = collective::kNcclPatience) {
  const Time deadline = steady_now() + patience;
  while (!is_so()) {
    if (steady_now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

using EventKind = BroadcastEvent::Kind;

// A rank, and the orders that it was given.
class GroupRank {
 public:
  explicit GroupRank(device::DeviceKind device = device::DeviceKind::kCpu)
      : process_{.api = the_fake_nccl().api, .streams = the_fake_nccl().streams} {
    process_.thread = &thread_;
    if (device == device::DeviceKind::kCpu) return;
    const device::CudaModule& module = **device::cuda_module();
    process_.streams = {.create_event = module.create_event,
                        .record_event = module.record_event,
                        .event_done = module.event_done,
                        .destroy_event = module.destroy_event};
  }

  const collective::NcclProcess& process() const { return process_; }
  std::unique_ptr<WeightPublisher> publisher;
  std::unique_ptr<WeightSubscriber> subscriber;

  BroadcastRank& broadcasts() const {
    return publisher ? *publisher->broadcasts() : *subscriber->broadcasts();
  }
  const std::vector<BroadcastEvent>& events() {
    for (BroadcastEvent& event : broadcasts().take_events()) events_.push_back(std::move(event));
    return events_;
  }
  std::int64_t count(EventKind kind, std::uint64_t epoch) {
    return std::ranges::count_if(
        events(), [&](const auto& event) { return event.kind == kind && event.epoch == epoch; });
  }
  bool told(EventKind kind, std::uint64_t epoch, Duration patience = collective::kNcclPatience) {
    return comes_true([&] { return count(kind, epoch) > 0; }, patience);
  }
  // Waits until the epoch has started on this rank or has failed; returns whether it started.
  bool joined(std::uint64_t epoch) {
    EXPECT_TRUE(comes_true(
        [&] { return count(EventKind::kJoined, epoch) + count(EventKind::kFailed, epoch) > 0; }));
    return count(EventKind::kJoined, epoch) > 0;
  }
  // The last event of that kind in that epoch.
  BroadcastEvent event(EventKind kind, std::uint64_t epoch) {
    BroadcastEvent last;
    for (const BroadcastEvent& event : events())
      if (event.kind == kind && event.epoch == epoch) last = event;
    return last;
  }
  std::int64_t broadcasts_done() const {
    return std::ranges::count_if(process_.records->snapshot(),
                                 [](const collective::NcclRecord& record) {
                                   return record.kind == collective::NcclKind::kBroadcast &&
                                          record.state == collective::NcclState::kDone;
                                 });
  }

 private:
  collective::NcclProcess process_;
  collective::NcclThread thread_{{.grace = collective::kNcclPatience}};
  std::vector<BroadcastEvent> events_;
};

struct Arrival {
  std::vector<std::byte> bytes;
  std::string error;  // the error of begin() or progress()
  bool by_broadcast = false;
};

class BroadcastGroup {
 public:
  explicit BroadcastGroup(int subscribers, Duration stall_max = collective::kNcclPatience,
                          device::DeviceKind device = device::DeviceKind::kCpu)
      : device_(device) {
    std::string pattern = testing::TempDir() + "broadcast.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    config_ = config_of(weights_name("broadcast-test", directory_), stall_max);
    for (int rank = 0; rank <= subscribers; ++rank) {
      ranks_.push_back(std::make_unique<GroupRank>(device));
      open(rank);
    }
  }
  ~BroadcastGroup() {
    the_fake_nccl().set_faults("");
    for (const auto& rank : ranks_) rank->subscriber.reset();
    ranks_[0]->publisher.reset();
    EXPECT_TRUE(remove_weights(config_of(0)));
    std::filesystem::remove_all(directory_);
  }

  // The configuration without the rank's own NCCL.
  static WeightsConfig config_of(const std::string& name, Duration stall_max) {
    return {.type = WeightsType::kNccl,
            .name = name,
            .slots = 3,
            .layout = {.arena_bytes = kGroupArenaBytes, .hash = 17, .manifest_json = "{}\n"},
            .stall_max = stall_max,
            .bucket_bytes = kGroupBucketBytes};
  }

  const std::string& name() const { return config_.name; }
  const std::filesystem::path& directory() const { return directory_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  GroupRank& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  WeightPublisher& publisher() { return *ranks_[0]->publisher; }
  WeightSubscriber& subscriber(int rank) { return *(*this)[rank].subscriber; }

  WeightsConfig config_of(int rank) {
    WeightsConfig config = config_;
    config.broadcasting =
        Broadcasting{.nccl = &(*this)[rank].process(), .device = device_, .name = "job/weights"};
    return config;
  }
  void open(int rank) {
    if (rank > 0) {
      (*this)[rank].subscriber = make_subscriber(config_of(rank));
      return;
    }
    auto made = make_publisher(config_of(0));
    CHECK(made.has_value());
    (*this)[0].publisher = *std::move(made);
  }

  // The epoch's ranks are the publisher and `members`, in this order.
  collective::NcclRendezvous invite(std::uint64_t epoch, const std::vector<int>& members) {
    const int size = static_cast<int>(members.size()) + 1;
    publisher().broadcasts()->open(epoch, size);
    EXPECT_TRUE((*this)[0].told(EventKind::kOpened, epoch));
    return {.epoch = epoch,
            .unique_id = (*this)[0].event(EventKind::kOpened, epoch).unique_id,
            .size = size,
            .layout_hash = config_.layout.hash};
  }
  void ask_to_join(const collective::NcclRendezvous& rendezvous, const std::vector<int>& members) {
    int rank = 0;
    for (const int member : members) subscriber(member).broadcasts()->join(rendezvous, ++rank);
  }
  // Starts the epoch; returns whether all members have come.
  bool start(std::uint64_t epoch, const std::vector<int>& members) {
    ask_to_join(invite(epoch, members), members);
    bool all = (*this)[0].joined(epoch);
    for (const int member : members) all &= (*this)[member].joined(epoch);
    return all;
  }
  bool use(std::uint64_t epoch) {
    publisher().broadcasts()->use(epoch);
    GroupRank& root = (*this)[0];
    EXPECT_TRUE(comes_true([&] {
      return root.count(EventKind::kInUse, epoch) + root.count(EventKind::kFailed, epoch) > 0;
    }));
    return root.count(EventKind::kInUse, epoch) > 0;
  }

  PublishStats publish(std::int64_t version, int lineage = 0) {
    auto stats =
        publisher().publish(v(version), weights_of(version, lineage), collective::kNcclPatience);
    EXPECT_TRUE(stats) << render(stats.error());
    return stats ? *stats : PublishStats{};
  }
  // Publishes `version` and tells `members` of it.
  PublishStats publish_to(const std::vector<int>& members, std::int64_t version) {
    const PublishStats stats = publish(version);
    for (const int member : members) tell(member, version, stats);
    return stats;
  }
  void tell(int member, std::int64_t version, const PublishStats& stats) {
    if (stats.broadcast) subscriber(member).expect(v(version), stats.checksum, *stats.broadcast);
  }

  Arrival arrival(int member, std::int64_t version) {
    Arrival arrived{.bytes = std::vector<std::byte>(kGroupArenaBytes), .error = {}};
    if (auto begun = subscriber(member).begin(v(version), arrived.bytes); !begun) {
      arrived.error = begun.error().message;
      return arrived;
    }
    finish(member, arrived);
    return arrived;
  }
  // Waits for the end of a copy into `arrived` that was begun.
  void finish(int member, Arrival& arrived) {
    const bool ended = comes_true([&] {
      const auto progress = subscriber(member).progress(10'000);
      if (!progress) arrived.error = progress.error().message;
      if (progress) arrived.by_broadcast = progress->arrives_by_itself;
      return !progress || progress->complete;
    });
    if (!ended) arrived.error = "it does not end";
  }

 private:
  const device::DeviceKind device_;
  std::filesystem::path directory_;
  WeightsConfig config_;
  std::vector<std::unique_ptr<GroupRank>> ranks_;
};

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tandem::weights
