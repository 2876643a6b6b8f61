// Publisher and subscriber of the slots in shared memory, without a server between them.
// Publishing: choose a slot (retention.h), claim it by making `sequence` odd, write, offer
// the version, and make `sequence` even. Subscribing: pin the slot, copy and hash it in parts,
// compare the checksum, unpin. Why a claim and a pin can never both succeed is explained in
// shm_segment.h (WT-1, WT-2).
//
// A subscriber that dies cannot unpin, so a pin counts only while the lock of its entry is held
// (WT-3), and the lock is asked for, not announced. With kCudaIpc the bytes are the publisher's GPU
// memory and end with the publisher, so a subscriber asks whether the publisher is alive before and
// after each read.
#include "runtime/weights/shm.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/weights/retention.h"
#include "runtime/weights/shm_reader.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/slot_memory.h"
#include "runtime/weights/version_copy.h"

namespace tandem::weights {
namespace {

// A subscriber that dies does not wake a publisher that waits for its pin, so the publisher looks
// again this often.
constexpr Duration kLivenessProbe = std::chrono::milliseconds(20);
// A kCudaIpc publisher that ends waits at most so long until subscribers that copy have noticed.
constexpr Duration kWithdrawWait = std::chrono::seconds(1);

class ShmPublisher : public WeightPublisher {
 public:
  ShmPublisher(const WeightsConfig& config, std::unique_ptr<ShmSegment> segment,
               std::unique_ptr<SlotWriter> memory)
      : config_(config), segment_(std::move(segment)), memory_(std::move(memory)) {}
  ~ShmPublisher() override;

  Result<PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                               Duration timeout) override;
  void retain(PolicyVersion oldest) override { retained_ = oldest; }
  void forget_after(PolicyVersion last) override;
  std::vector<PolicyVersion> offered() override;
  // A source exists for kAuto: by it subscribers of other hosts learn that this publisher does not
  // serve them.
  std::optional<wire::WeightSource> source() const override {
    if (config_.type != WeightsType::kAuto) return std::nullopt;
    return wire::WeightSource{.host = host_identity()};
  }

 private:
  Result<std::size_t> claim(PolicyVersion version, Time deadline);
  bool try_claim(std::size_t slot);
  std::vector<VersionSlot> version_slots();
  bool pinned(std::size_t slot);
  std::string holders();

  const WeightsConfig config_;
  const std::unique_ptr<ShmSegment> segment_;
  const std::unique_ptr<SlotWriter> memory_;
  std::optional<PolicyVersion> retained_;
};

ShmPublisher::~ShmPublisher() {
  if (traits_of(config_.type).versions != VersionMemory::kGpuMemory) return;
  SegmentHeader& header = segment_->header();
  // The GPU memory goes with this object: withdraw every version, then give readers time to close
  // their blocks, since CUDA leaves undefined what a reader with an open block sees.
  for (SegmentSlot& slot : header.slot) slot.offered = 0;
  const Time deadline = steady_now() + kWithdrawWait;
  for (;;) {
    const std::uint32_t releases = header.releases;
    const std::vector<VersionSlot> all = version_slots();
    if (std::ranges::none_of(all, [](const VersionSlot& slot) { return slot.in_use; })) return;
    const Time now = steady_now();
    if (now >= deadline) return;
    segment_->wait_for_release(releases, std::min(kLivenessProbe, deadline - now));
  }
}

Result<PublishStats> ShmPublisher::publish(PolicyVersion version, std::span<const std::byte> arena,
                                           Duration timeout) {
  CHECK(arena.size() == config_.layout.arena_bytes);
  const Time start = steady_now();
  for (std::size_t i = 0; i < static_cast<std::size_t>(config_.slots); ++i) {
    SegmentSlot& there = segment_->header().slot[i];
    if (offered_version(there) != version) continue;
    const std::uint64_t checksum = checksum64(arena);
    if (there.checksum != checksum) {
      // Other content under the same number starts a new lineage: later versions are of the old
      // one.
      forget_after(PolicyVersion{version.value - 1});
      break;
    }
    if (memory_->checksum_of(i) == checksum) {
      return PublishStats{
          .bytes = 0, .seconds = seconds(steady_now() - start), .checksum = checksum};
    }
    there.offered = 0;  // somebody wrote to it: copies of it end, and it is written anew
    break;
  }
  const Result<std::size_t> claimed = claim(version, start + timeout);
  if (!claimed) return claimed.error();
  SegmentSlot& slot = segment_->header().slot[*claimed];
  const std::uint64_t checksum = memory_->write(*claimed, arena);
  // `sequence` is odd until the last line, so readers see either none of these stores or all.
  slot.version = version.value;
  slot.checksum = checksum;
  slot.offered = 1;
  slot.sequence.fetch_add(1);
  return PublishStats{
      .bytes = arena.size(), .seconds = seconds(steady_now() - start), .checksum = checksum};
}

// Waits for a slot that may be reused, and returns it marked as being written.
Result<std::size_t> ShmPublisher::claim(PolicyVersion version, Time deadline) {
  SegmentHeader& header = segment_->header();
  for (;;) {
    const std::uint32_t releases = header.releases;
    const std::optional<std::size_t> slot = slot_to_reuse(version_slots(), retained_, version);
    if (slot && try_claim(*slot)) return *slot;
    if (slot) continue;  // pinned meanwhile: version_slots() will say so
    const Time now = steady_now();
    if (now >= deadline) {
      return Error{.code = ErrorCode::kTimedOut,
                   .message = "cannot publish policy version " + std::to_string(version.value) +
                              " of " + config_.name + ": no place is free: " + holders(),
                   .where = {},
                   .help = {}};
    }
    segment_->wait_for_release(releases, std::min(kLivenessProbe, deadline - now));
  }
}

bool ShmPublisher::try_claim(std::size_t index) {
  SegmentSlot& slot = segment_->header().slot[index];
  slot.sequence.fetch_add(1);
  if (pinned(index)) {
    slot.sequence.fetch_add(1);
    return false;
  }
  slot.offered = 0;
  return true;
}

bool ShmPublisher::pinned(std::size_t slot) {
  for (std::uint32_t i = 0; i < kReadersMax; ++i) {
    SegmentReader& reader = segment_->header().reader[i];
    if (reader.pinned.load() != slot + 1) continue;
    // The pin of a process that has ended stays in its entry until a next reader takes the entry
    // over; the lock tells that it does not count.
    if (segment_->byte_is_locked_by_another(i)) return true;
  }
  return false;
}

std::vector<VersionSlot> ShmPublisher::version_slots() {
  std::vector<VersionSlot> all(static_cast<std::size_t>(config_.slots));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {.version = offered_version(segment_->header().slot[i]), .in_use = pinned(i)};
  }
  return all;
}

// The text for the error: which process holds which version, and which versions are kept.
std::string ShmPublisher::holders() {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (std::size_t i = 0; i < static_cast<std::size_t>(config_.slots); ++i) {
    const auto version = offered_version(segment_->header().slot[i]);
    const std::string name =
        version ? "version " + std::to_string(version->value) : "a forgotten version";
    bool in_use = false;
    for (std::uint32_t r = 0; r < kReadersMax; ++r) {
      const SegmentReader& reader = segment_->header().reader[r];
      if (reader.pinned.load() != i + 1 || !segment_->byte_is_locked_by_another(r)) continue;
      add(name + " is being copied by process " + std::to_string(reader.pid.load()));
      in_use = true;
    }
    if (!in_use) add(name + " is kept");
  }
  return text;
}

void ShmPublisher::forget_after(PolicyVersion last) {
  for (int i = 0; i < config_.slots; ++i) {
    SegmentSlot& slot = segment_->header().slot[i];
    if (slot.version.load() > last.value) slot.offered = 0;
  }
}

std::vector<PolicyVersion> ShmPublisher::offered() {
  std::vector<PolicyVersion> all;
  for (int i = 0; i < config_.slots; ++i)
    if (const auto version = offered_version(segment_->header().slot[i])) all.push_back(*version);
  std::ranges::sort(all);
  return all;
}

// The time since which no block of one start of the publisher (`life`) could be opened.
struct Refusals {
  std::uint64_t life;
  Time since;
};

class ShmSubscriber : public WeightSubscriber {
 public:
  explicit ShmSubscriber(const WeightsConfig& config) : config_(config) {}
  ~ShmSubscriber() override { ShmSubscriber::cancel(); }

  Result<std::optional<PolicyVersion>> newest() override;
  bool available(PolicyVersion version) override;
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override;
  Result<UpdateProgress> progress(std::uint64_t bytes_max) override;
  void cancel() override;
  bool in_place() const override {
    return traits_of(config_.type).versions != VersionMemory::kGpuMemory;
  }
  std::span<const std::byte> held() override;
  std::optional<Installed> installed() const override { return installed_; }
  std::optional<std::uint64_t> checksum_of(PolicyVersion version) override;
  std::uint64_t publisher_life() override;

 private:
  Result<bool> attach();
  bool publisher_is_there() const;
  bool still_offered() const;
  std::span<const std::byte> take_part(std::uint64_t bytes);
  void unpin();
  Error withdrawn(PolicyVersion version) const;
  Error give_up();
  Error not_opened(PolicyVersion version, const Error& why);

  const WeightsConfig config_;
  std::unique_ptr<ShmSegment> segment_;
  std::unique_ptr<SlotReader> memory_;  // reads the slots of segment_
  std::optional<ShmReader> reader_;     // in segment_
  std::optional<VersionCopy> copy_;     // one in place stays after it is complete
  std::size_t slot_ = 0;                // pinned for copy_
  std::optional<Installed> installed_;
  std::optional<Refusals> refusals_;
};

// Opens the segment where none is open; false where there is none. A segment that has been given up
// (its name leads to it no more) is left for its successor, but not while a copy reads from it.
Result<bool> ShmSubscriber::attach() {
  if (segment_ && !segment_->given_up()) return true;
  if (copy_) return false;
  memory_.reset();
  reader_.reset();
  segment_.reset();
  auto opened = ShmSegment::open(config_, ShmSegment::Access::kReadSlots);
  if (!opened) return opened.error();
  if (!*opened) return false;
  auto segment = std::make_unique<ShmSegment>(std::move(**opened));
  Result<ShmReader> reader = ShmReader::enter(*segment, config_);
  if (!reader) return reader.error();
  auto memory = make_slot_reader(config_, *segment);
  if (!memory) return memory.error();
  segment_ = std::move(segment);
  memory_ = *std::move(memory);
  reader_ = *reader;
  return true;
}

// Whether the bytes of the offered versions exist: GPU memory ends with its publisher.
bool ShmSubscriber::publisher_is_there() const {
  return traits_of(config_.type).versions != VersionMemory::kGpuMemory ||
         segment_->byte_is_locked_by_another(kPublisherLockByte);
}

Result<std::optional<PolicyVersion>> ShmSubscriber::newest() {
  const Result<bool> attached = attach();
  if (!attached) return attached.error();
  std::optional<PolicyVersion> newest;
  if (!*attached || !publisher_is_there()) return newest;
  for (int i = 0; i < config_.slots; ++i) {
    newest = std::max(newest, offered_version(segment_->header().slot[i]));
  }
  return newest;
}

bool ShmSubscriber::available(PolicyVersion version) {
  const Result<bool> attached = attach();
  if (!attached || !*attached || !publisher_is_there()) return false;
  for (int i = 0; i < config_.slots; ++i) {
    if (offered_version(segment_->header().slot[i]) == version) return true;
  }
  return false;
}

std::optional<std::uint64_t> ShmSubscriber::checksum_of(PolicyVersion version) {
  if (!available(version)) return std::nullopt;
  for (int i = 0; i < config_.slots; ++i) {
    const auto offer = offer_of(segment_->header().slot[i]);
    if (offer && offer->version == version) return offer->checksum;
  }
  return std::nullopt;
}

Result<void> ShmSubscriber::begin(PolicyVersion version, std::span<std::byte> buffer) {
  CHECK(buffer.size() == config_.layout.arena_bytes || (buffer.empty() && in_place()));
  cancel();
  const Result<bool> attached = attach();
  if (!attached) return attached.error();
  const std::optional<std::size_t> slot =
      *attached && publisher_is_there() ? reader_->pin(version) : std::nullopt;
  if (!slot) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "policy version " + std::to_string(version.value) + " of " +
                            config_.name + " is not offered",
                 .where = {},
                 .help = {}};
  }
  slot_ = *slot;
  if (const Result<void> opened = memory_->open(slot_); !opened) {
    unpin();
    return not_opened(version, opened.error());
  }
  refusals_.reset();
  const std::uint64_t checksum = segment_->header().slot[slot_].checksum.load();
  if (buffer.empty()) {
    copy_.emplace(version, checksum, config_.layout.arena_bytes);
  } else {
    copy_.emplace(version, checksum, buffer);
  }
  return {};
}

// The pin lasts as long as copy_, so the slot is not written while the bytes are held.
std::span<const std::byte> ShmSubscriber::held() {
  if (!copy_ || !copy_->in_place() || !copy_->complete() || !still_offered()) return {};
  return segment_->slot_bytes(slot_).first(config_.layout.arena_bytes);
}

// A block cannot be opened after its publisher has died. The publisher's lock tells that, except at
// two moments: the publisher's memory is gone and its lock not yet, or a successor has taken the
// lock and has not yet withdrawn the versions that it found. A refusal that lasts longer, with one
// and the same publisher, has another cause, such as another GPU, and trying again would not help.
Error ShmSubscriber::not_opened(PolicyVersion version, const Error& why) {
  const std::uint64_t life = segment_->header().publisher_life;
  const Time now = steady_now();
  if (!refusals_ || refusals_->life != life) refusals_ = {.life = life, .since = now};
  if (!publisher_is_there() || now - refusals_->since < config_.dying_max) {
    Error gone = withdrawn(version);
    gone.code = ErrorCode::kNotFound;  // to be asked for again
    return gone;
  }
  return {
      .code = ErrorCode::kInvalid,
      .message = "cannot take weights from the publisher of " + config_.name + ": " + why.message,
      .where = "weight_broadcast.type",
      .help = "cuda_ipc needs learner and rollouts on one GPU; set it to auto"};
}

// The next `bytes` of the copy, for the caller to hash; fewer may have been copied.
std::span<const std::byte> ShmSubscriber::take_part(std::uint64_t bytes) {
  if (copy_->in_place()) return segment_->slot_bytes(slot_).subspan(copy_->offset(), bytes);
  return memory_->read(copy_->offset(), copy_->next(bytes));
}

Result<UpdateProgress> ShmSubscriber::progress(std::uint64_t bytes_max) {
  CHECK(copy_.has_value());
  // Whether the slot is still offered is asked before each read, because the memory may have gone,
  // and after the last one, because it may have gone during a read: GPU memory can end with its
  // publisher at any time (shared_block.h).
  const std::uint64_t end = copy_->offset() + copy_->next_bytes(bytes_max);
  while (copy_->offset() < end) {
    if (!still_offered()) return give_up();
    copy_->take(take_part(end - copy_->offset()));
  }
  const UpdateProgress progress = copy_->progress();
  if (!still_offered()) return give_up();
  if (!progress.complete) return progress;
  const Result<void> verified = copy_->verify(config_.name);
  if (verified) {
    installed_ = Installed{.version = copy_->version(),
                           .checksum = copy_->checksum(),
                           .bytes = copy_->in_place() ? 0 : progress.bytes_total};
  }
  if (!verified || !copy_->in_place()) cancel();
  if (!verified) return verified.error();
  return progress;
}

// offered_version() would not do: while a publisher takes a claim back the sequence is odd for a
// moment, although the pinned slot is still offered.
bool ShmSubscriber::still_offered() const {
  return segment_->header().slot[slot_].offered != 0 && publisher_is_there();
}

Error ShmSubscriber::give_up() {
  const PolicyVersion version = copy_->version();
  cancel();
  return withdrawn(version);
}

void ShmSubscriber::cancel() {
  if (!copy_) return;
  copy_.reset();
  unpin();
}

void ShmSubscriber::unpin() {
  memory_->close();
  reader_->unpin();
}

Error ShmSubscriber::withdrawn(PolicyVersion version) const {
  const std::string number = std::to_string(version.value);
  const bool there = publisher_is_there();
  return {.code = there ? ErrorCode::kFailed : ErrorCode::kNotFound,
          .message = "the publisher of " + config_.name +
                     (there ? " has withdrawn policy version "
                            : " has gone, and with its GPU memory policy version ") +
                     number,
          .where = {},
          .help = {}};
}

std::uint64_t ShmSubscriber::publisher_life() {
  const Result<bool> attached = attach();
  if (!attached || !*attached) return 0;
  return segment_->header().publisher_life;
}

}  // namespace

Result<std::unique_ptr<WeightPublisher>> make_shm_publisher(const WeightsConfig& config) {
  Result<ShmSegment> opened = ShmSegment::open_or_create(config);
  if (!opened) return opened.error();
  auto segment = std::make_unique<ShmSegment>(std::move(*opened));
  auto memory = make_slot_writer(config, *segment);
  if (!memory) return memory.error();
  return std::unique_ptr<WeightPublisher>(
      std::make_unique<ShmPublisher>(config, std::move(segment), *std::move(memory)));
}

std::unique_ptr<WeightSubscriber> make_shm_subscriber(const WeightsConfig& config) {
  return std::make_unique<ShmSubscriber>(config);
}

}  // namespace tandem::weights
