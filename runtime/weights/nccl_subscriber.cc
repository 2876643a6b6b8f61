// The subscriber of kNccl: a fetching subscriber, and a spare arena in which broadcasts arrive. All
// ranks take part in all broadcasts of an epoch, whether the version is wanted or not, so a version
// may arrive on the epoch's thread before or after begin() asks for it. progress() takes a version
// over from the spare arena once it is whole and verified (WB-1). A version that is not on its way,
// or has been overwritten by a later one, is fetched instead.
//
// Easy to get wrong: the spare arena is written without its mutex, while `content_` is empty;
// readers look at `content_` under the mutex first.
#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "runtime/base/digest.h"
#include "runtime/base/log.h"
#include "runtime/weights/broadcast_epochs.h"
#include "runtime/weights/nccl.h"
#include "runtime/weights/read_back.h"
#include "runtime/weights/tcp.h"

namespace tandem::weights {
namespace {

// The configuration of the fetching subscriber. The publisher's segment has kBroadcastSlots more
// slots (nccl_publisher.cc), and a subscriber must expect the same number.
WeightsConfig fetched_as(WeightsConfig config) {
  config.type = WeightsType::kAuto;
  config.slots += kBroadcastSlots;
  return config;
}

// The newest version that arrived by broadcast, and the memory in which the next one arrives.
class SpareArena final : public BroadcastCarrier {
 public:
  using Content = WeightSubscriber::Installed;

  explicit SpareArena(const WeightsConfig& config) : config_(config) {}

  std::optional<Content> content() const {
    const std::lock_guard lock(mutex_);
    return content_;
  }
  // Copies the wanted version to `to` if the arena holds it. The mutex is held throughout, so that
  // the next broadcast cannot overwrite the version meanwhile.
  bool take(const Content& wanted, const device::Stream& stream, std::span<std::byte> to) const {
    const std::lock_guard lock(mutex_);
    if (!holds(wanted)) return false;
    copy(stream, to.data(), arena_.data(), to.size());
    synchronize(stream);
    return true;
  }
  // Forgets a version of this number or a later one with other content: it is of a lineage that has
  // ended.
  void forget_other(const Content& expected) {
    const std::lock_guard lock(mutex_);
    if (content_ && content_->version >= expected.version && !holds(expected)) content_.reset();
  }
  std::uint64_t bytes_arrived(PolicyVersion version) const {
    const std::lock_guard lock(mutex_);
    return version == carried_ ? arrived_ : 0;
  }

  Result<void> prepare() override;
  Result<void> carry(collective::NcclCommunicator& communicator, const BroadcastStaging& staging,
                     const BroadcastJob& job) override;
  void over(const BroadcastJob&) override {}

 private:
  bool holds(const Content& wanted) const {
    return content_ && content_->version == wanted.version && content_->checksum == wanted.checksum;
  }
  Result<std::uint64_t> receive(collective::NcclCommunicator& communicator,
                                const BroadcastStaging& staging, PolicyVersion version);

  const WeightsConfig config_;
  mutable std::mutex mutex_;
  std::unique_ptr<ReadBack> copies_;
  device::Buffer arena_;            // written by carry() alone, and only while content_ is empty
  std::optional<Content> content_;  // set once arena_ is whole and verified
  PolicyVersion carried_;           // the version on its way, or the last that was
  std::uint64_t arrived_ = 0;       // bytes of carried_
};

Result<void> SpareArena::prepare() {
  const std::lock_guard lock(mutex_);
  // The arena is allocated with the first epoch, and later epochs use it too.
  if (copies_) return {};
  const device::MemoryKind kind = operand_memory(config_.broadcasting->device);
  auto arena = device::Buffer::allocate(config_.layout.arena_bytes,
                                        "weights that are being broadcast", kind);
  if (!arena) return arena.error();
  auto copies = ReadBack::make(config_.broadcasting->device, config_.layout.arena_bytes);
  if (!copies) return copies.error();
  arena_ = *std::move(arena);
  copies_ = *std::move(copies);
  return {};
}

Result<void> SpareArena::carry(collective::NcclCommunicator& communicator,
                               const BroadcastStaging& staging, const BroadcastJob& job) {
  {
    const std::lock_guard lock(mutex_);
    carried_ = job.version;
    arrived_ = 0;
  }
  const auto checksum = receive(communicator, staging, job.version);
  if (!checksum) return checksum.error();
  if (*checksum != job.checksum)
    return Error{.message = fmt::format(
                     "policy version {} came damaged by broadcast {} of {}, epoch {}: its checksum "
                     "is {:016x}, and {:016x} was published",
                     job.version.value, job.place.sequence, config_.broadcasting->name,
                     job.place.epoch, *checksum, job.checksum)};
  const std::lock_guard lock(mutex_);
  content_ = Content{.version = job.version, .checksum = job.checksum};
  return {};
}

// Receives a version into the arena and returns the checksum of its bytes. While one bucket is
// emptied, the other is filled by NCCL.
Result<std::uint64_t> SpareArena::receive(collective::NcclCommunicator& communicator,
                                          const BroadcastStaging& staging, PolicyVersion version) {
  std::optional<collective::NcclTicket> coming[2];
  Checksum64 checksum;
  const auto ask = [&](std::size_t part) -> Result<void> {
    if (part >= staging.parts()) return {};
    auto ticket = staging.submit(communicator, version, part);
    if (!ticket) return ticket.error();
    coming[part % 2] = *std::move(ticket);
    return {};
  };
  for (const std::size_t part : {std::size_t{0}, std::size_t{1}})
    if (auto asked = ask(part); !asked) return asked.error();
  for (std::size_t part = 0; part < staging.parts(); ++part) {
    if (auto came = coming[part % 2]->wait(); !came) return came.error();
    // The version that was there stays available until bytes of the next one are about to be
    // written.
    if (part == 0) {
      const std::lock_guard lock(mutex_);
      content_.reset();
    }
    std::span<std::byte> to(arena_.data() + staging.offset(part), staging.bytes(part));
    for (const std::byte* from = staging.bucket(part); !to.empty();) {
      const std::span<const std::byte> copied = copies_->copy_part(from, to);
      checksum.update(copied);
      from += copied.size();
      to = to.subspan(copied.size());
    }
    {
      const std::lock_guard lock(mutex_);
      arrived_ += staging.bytes(part);
    }
    if (auto asked = ask(part + 2); !asked) return asked.error();
  }
  return checksum.value();
}

class NcclSubscriber final : public WeightSubscriber {
 public:
  explicit NcclSubscriber(const WeightsConfig& config)
      : config_(config),
        fetches_(make_auto_subscriber(fetched_as(config), WeightsType::kShm)),
        copies_(config.broadcasting->device),
        spare_(config),
        epochs_(config, spare_) {}

  void look_at(const wire::WeightSource& source) override { fetches_->look_at(source); }
  void expect(PolicyVersion version, std::uint64_t checksum,
              const wire::BroadcastPlace& place) override;
  BroadcastRank* broadcasts() override { return &epochs_; }
  Result<std::optional<PolicyVersion>> newest() override { return fetches_->newest(); }
  bool available(PolicyVersion version) override { return fetches_->available(version); }
  std::optional<std::uint64_t> checksum_of(PolicyVersion version) override {
    return fetches_->checksum_of(version);
  }
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override;
  Result<UpdateProgress> progress(std::uint64_t bytes_max) override;
  void cancel() override;
  std::optional<Installed> installed() const override { return installed_; }
  std::uint64_t publisher_life() override { return fetches_->publisher_life(); }

 private:
  std::optional<std::uint64_t> checksum_by_broadcast(PolicyVersion version);
  Result<void> begin_fetch();
  Result<UpdateProgress> progress_of_fetch(std::uint64_t bytes_max);

  const WeightsConfig config_;
  const std::unique_ptr<WeightSubscriber> fetches_;
  const device::Queue copies_;

  std::span<std::byte> buffer_;      // where the copy that is under way goes
  std::optional<Installed> coming_;  // set while the version is expected by broadcast
  PolicyVersion version_;            // the version of begin()
  device::Buffer fetched_;           // on the host: a fetched version on its way to a GPU
  std::optional<Installed> installed_;
  // For the log: versions that came by broadcast, and the epoch of the newest that was announced.
  std::uint64_t taken_ = 0, epoch_ = 0;
  bool first_of_epoch_ = false;

  SpareArena spare_;
  BroadcastEpochs epochs_;  // destroyed first: its threads use the spare arena
};

void NcclSubscriber::expect(PolicyVersion version, std::uint64_t checksum,
                            const wire::BroadcastPlace& place) {
  first_of_epoch_ = first_of_epoch_ || place.epoch != epoch_;
  epoch_ = place.epoch;
  spare_.forget_other({.version = version, .checksum = checksum});
  epochs_.receive({.place = place, .version = version, .checksum = checksum});
}

// The checksum under which the version arrives, or has arrived, by broadcast; none where it must be
// fetched. A version that is offered with another checksum belongs to a newer lineage: the
// broadcast is of an old one.
std::optional<std::uint64_t> NcclSubscriber::checksum_by_broadcast(PolicyVersion version) {
  std::optional<std::uint64_t> checksum = epochs_.checksum_on_its_way(version);
  if (!checksum) {
    const auto spare = spare_.content();
    if (spare && spare->version == version) checksum = spare->checksum;
  }
  const auto offered = fetches_->checksum_of(version);
  return offered && offered != checksum ? std::nullopt : checksum;
}

Result<void> NcclSubscriber::begin(PolicyVersion version, std::span<std::byte> buffer) {
  CHECK(buffer.size() == config_.layout.arena_bytes);
  cancel();
  buffer_ = buffer;
  version_ = version;
  if (const auto checksum = checksum_by_broadcast(version)) {
    coming_ = Installed{.version = version, .checksum = *checksum, .bytes = buffer.size()};
    return {};
  }
  return begin_fetch();
}

// The fetching families write into host memory alone, so a GPU's buffer is filled from a host
// buffer.
Result<void> NcclSubscriber::begin_fetch() {
  if (config_.broadcasting->device == device::DeviceKind::kCpu)
    return fetches_->begin(version_, buffer_);
  auto host = device::Buffer::allocate(buffer_.size(), "weights that are fetched");
  if (!host) return host.error();
  auto begun = fetches_->begin(version_, host->bytes());
  if (begun) fetched_ = *std::move(host);
  return begun;
}

Result<UpdateProgress> NcclSubscriber::progress(std::uint64_t bytes_max) {
  if (!coming_) return progress_of_fetch(bytes_max);
  // The epochs are asked before the spare arena: a broadcast that ends between the two is then
  // found there.
  const bool on_its_way = epochs_.checksum_on_its_way(version_) == coming_->checksum;
  UpdateProgress now{.bytes_total = buffer_.size(), .arrives_by_itself = true};
  if (spare_.take(*coming_, copies_.stream(), buffer_)) {
    installed_ = std::exchange(coming_, std::nullopt);
    ++taken_;
    if (std::exchange(first_of_epoch_, false) || log::worth_a_line(taken_))
      log::info("event=weights_by_broadcast weights={} version={} epoch={} times={}", config_.name,
                version_.value, epoch_, taken_);
    now.bytes_done = now.bytes_total;
    now.complete = true;
    return now;
  }
  if (on_its_way) {
    now.bytes_done = spare_.bytes_arrived(version_);
    return now;
  }
  coming_.reset();
  if (auto begun = begin_fetch(); !begun) return begun.error();
  return progress_of_fetch(bytes_max);
}

Result<UpdateProgress> NcclSubscriber::progress_of_fetch(std::uint64_t bytes_max) {
  Result<UpdateProgress> now = fetches_->progress(bytes_max);
  if (now && !now->complete) return now;
  if (now && fetched_.size() > 0) {
    copy(copies_.stream(), buffer_.data(), fetched_.data(), buffer_.size());
    synchronize(copies_.stream());
  }
  if (now) installed_ = fetches_->installed();
  fetched_ = {};
  return now;
}

void NcclSubscriber::cancel() {
  coming_.reset();
  fetches_->cancel();
  fetched_ = {};
}

}  // namespace

std::unique_ptr<WeightSubscriber> make_nccl_subscriber(const WeightsConfig& config) {
  return std::make_unique<NcclSubscriber>(config);
}

}  // namespace tandem::weights
