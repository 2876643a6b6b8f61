// The publisher of kNccl: a TCP publisher, which keeps the versions, and rank 0 of the broadcasts.
// A version that was published is pinned in its slot until its broadcast is over, so that the bytes
// stay while NCCL reads them. At most kBroadcastSlots versions are pinned; a version published
// while so many wait is not broadcast, and subscribers fetch it.
#include <mutex>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/device/cuda_module.h"
#include "runtime/weights/broadcast_epochs.h"
#include "runtime/weights/nccl.h"
#include "runtime/weights/shared_pins.h"
#include "runtime/weights/tcp.h"

namespace tandem::weights {
namespace {

class NcclPublisher final : public WeightPublisher, private BroadcastCarrier {
 public:
  NcclPublisher(const WeightsConfig& config, std::unique_ptr<WeightPublisher> store,
                SharedPins pins)
      : config_(config),
        store_(std::move(store)),
        pins_(std::move(pins)),
        copies_(config.broadcasting->device),
        epochs_(config, *this) {}

  Result<PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                               Duration timeout) override;
  void retain(PolicyVersion oldest) override { store_->retain(oldest); }
  void forget_after(PolicyVersion last) override { store_->forget_after(last); }
  std::vector<PolicyVersion> offered() override { return store_->offered(); }
  std::optional<wire::WeightSource> source() const override { return store_->source(); }
  BroadcastRank* broadcasts() override { return &epochs_; }

 private:
  std::optional<wire::BroadcastPlace> send(PolicyVersion version, std::uint64_t checksum);
  Result<void> prepare() override { return {}; }
  Result<void> carry(collective::NcclCommunicator& communicator, const BroadcastStaging& staging,
                     const BroadcastJob& job) override;
  void over(const BroadcastJob& job) override;

  const WeightsConfig config_;
  const std::unique_ptr<WeightPublisher> store_;  // the TCP publisher
  std::mutex mutex_;                              // guards the next two
  SharedPins pins_;
  int pinned_ = 0;              // broadcasts under way or waiting; at most kBroadcastSlots
  bool skipping_ = false;       // the last version was not broadcast, because too many wait
  const device::Queue copies_;  // used only by the thread that carries
  BroadcastEpochs epochs_;      // destroyed first: its threads use the others
};

// A version that was there already (bytes == 0) was offered before, and perhaps broadcast.
Result<PublishStats> NcclPublisher::publish(PolicyVersion version, std::span<const std::byte> arena,
                                            Duration timeout) {
  Result<PublishStats> published = store_->publish(version, arena, timeout);
  if (published && published->bytes > 0) published->broadcast = send(version, published->checksum);
  return published;
}

std::optional<wire::BroadcastPlace> NcclPublisher::send(PolicyVersion version,
                                                        std::uint64_t checksum) {
  BroadcastJob job{.place = {}, .version = version, .checksum = checksum};
  {
    const std::lock_guard lock(mutex_);
    // Waiting here would make publish() wait for a broadcast (WB-3).
    if (pinned_ == kBroadcastSlots) {
      if (!std::exchange(skipping_, true))
        log::warn("event=weights_not_broadcast weights={} version={} reason=\"{} are under way\"",
                  config_.name, version.value, pinned_);
      return std::nullopt;
    }
    const auto slot = pins_.acquire({.version = version, .checksum = checksum});
    if (!slot) return std::nullopt;
    job.slot = *slot;
    ++pinned_;
    skipping_ = false;
  }
  const auto place = epochs_.send(job);
  if (!place) over(job);
  return place;
}

// Fills one bucket while NCCL sends the other. A bucket is filled again only after its last send
// has ended.
Result<void> NcclPublisher::carry(collective::NcclCommunicator& communicator,
                                  const BroadcastStaging& staging, const BroadcastJob& job) {
  const std::byte* const from = pins_.bytes(job.slot).data();
  std::optional<collective::NcclTicket> sent[2];
  for (std::size_t part = 0; part < staging.parts(); ++part) {
    std::optional<collective::NcclTicket>& before = sent[part % 2];
    if (before)
      if (auto done = before->wait(); !done) return done;
    copy(copies_.stream(), staging.bucket(part), from + staging.offset(part), staging.bytes(part));
    synchronize(copies_.stream());
    auto ticket = staging.submit(communicator, job.version, part);
    if (!ticket) return ticket.error();
    before = *std::move(ticket);
  }
  for (const std::optional<collective::NcclTicket>& last : sent)
    if (last)
      if (auto done = last->wait(); !done) return done;
  return {};
}

void NcclPublisher::over(const BroadcastJob& job) {
  const std::lock_guard lock(mutex_);
  pins_.release(job.slot);
  --pinned_;
}

}  // namespace

Result<std::unique_ptr<WeightPublisher>> make_nccl_publisher(const WeightsConfig& config) {
  WeightsConfig stored = config;
  stored.type = WeightsType::kTcp;
  // Pinned versions occupy slots, which must not come out of those that the configuration asks for.
  stored.slots += kBroadcastSlots;
  CHECK(stored.slots <= static_cast<int>(kSlotsMax));
  if (config.broadcasting->device == device::DeviceKind::kCuda)
    if (const auto& module = device::cuda_module(); !module) return module.error();
  auto store = make_tcp_publisher(stored);
  if (!store) return store.error();
  auto pins = SharedPins::open(stored);
  if (!pins) return pins.error();
  return std::unique_ptr<WeightPublisher>(
      std::make_unique<NcclPublisher>(config, *std::move(store), *std::move(pins)));
}

}  // namespace tandem::weights
