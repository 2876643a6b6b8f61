// The shared memory of one weight family: one file in /dev/shm with a header and the slots. A slot
// is a whole version or, of kCudaIpc, the name of a block of GPU memory that holds the version.
// Internal to runtime/weights.
//
// Open-file-description locks on single bytes of the file say which processes are alive: the kernel
// drops them however a process ends, and, unlike pids, they are never reused and do not depend on a
// namespace. A segment appears under its name complete (it is linked there after it was filled in).
// A segment whose link count is 0 has been given up.
//
// A slot is guarded like this (all atomics are sequentially consistent). The publisher makes
// `sequence` odd, then looks whether any reader has pinned the slot. A reader pins the slot, then
// looks whether `sequence` is even and unchanged. So at least one of them sees the other: the
// publisher takes its claim back, or the reader takes its pin back, and no slot is written while it
// is read (WT-1, WT-2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/file.h"
#include "runtime/weights/weight_offer.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

inline constexpr std::uint32_t kSlotsMax = 64;
inline constexpr std::uint32_t kReadersMax = 256;
inline constexpr std::uint32_t kPublisherLockByte = kReadersMax;  // bytes below it are the readers'

struct alignas(64) SegmentSlot {
  std::atomic<std::uint64_t> sequence;  // odd while the publisher writes
  std::atomic<std::uint32_t> offered;   // 1: version, checksum and the bytes are valid
  std::atomic<std::int64_t> version;
  std::atomic<std::uint64_t> checksum;
};

// One reader's entry; the reader holds the lock of the byte with the entry's index.
struct SegmentReader {
  std::atomic<std::int32_t> pid;      // for messages only
  std::atomic<std::uint32_t> pinned;  // 0: nothing; else 1 + the slot
};

// The beginning of the file. Zeros, but for the first fields, are a valid header without versions.
// The fields that are not atomic are written before the file has a name, and never again.
struct SegmentHeader {
  std::uint64_t magic;  // kMagic; written last
  std::uint64_t slots;
  std::uint64_t arena_bytes;
  std::uint64_t layout_hash;
  std::uint64_t on_gpu;                       // 1: kCudaIpc
  std::atomic<std::uint64_t> publisher_life;  // how many publishers have started
  std::atomic<std::int32_t> publisher_pid;    // for messages only
  std::atomic<std::uint32_t> releases;        // a futex: counts pins that were given up
  SegmentSlot slot[kSlotsMax];
  SegmentReader reader[kReadersMax];
};

// A mapped range of a file, unmapped by the destructor.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, std::size_t bytes) : address_(address), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return static_cast<std::byte*>(address_); }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

// The version that a slot offers; none while the slot is empty or being written.
std::optional<WeightOffer> offer_of(const SegmentSlot& slot);
std::optional<PolicyVersion> offered_version(const SegmentSlot& slot);

// An open segment. The locks that it takes are held until it is destroyed. The header is shared
// with other processes, which may change its atomics at any time.
class ShmSegment {
 public:
  enum class Access { kReadSlots, kWriteSlots };

  // The file of the family of that name.
  static std::filesystem::path path_of(const std::string& name);

  // Opens the segment of config.name; none if there is none. kInvalid if it has another layout or
  // number of slots, or is no segment at all.
  static Result<std::optional<ShmSegment>> open(const WeightsConfig& config, Access access);

  // For a publisher: takes over the segment that an ended publisher left, if it has our layout,
  // else makes a new one in its place. Holds the publisher's lock from then on; kFailed, naming the
  // process, where a live publisher holds it (WT-4).
  static Result<ShmSegment> open_or_create(const WeightsConfig& config);

  // The bytes of a slot: a version, or of kCudaIpc a BlockName.
  SegmentHeader& header() const;
  std::span<std::byte> slot_bytes(std::size_t slot) const;

  // Locks `count` bytes from `byte` on, without waiting; false if another segment object holds one
  // of them. Held until the segment is closed.
  bool lock_byte(std::uint32_t byte, std::uint32_t count = 1) const;
  bool byte_is_locked_by_another(std::uint32_t byte) const;

  bool given_up() const;  // the file has no name any more

  // Counts a pin that was given up, and wakes a publisher that waits for one.
  void tell_release() const;
  // Waits until header().releases differs from `seen`, at most `timeout`; may return earlier.
  void wait_for_release(std::uint32_t seen, Duration timeout) const;

 private:
  ShmSegment(OwnedFd fd, Mapping header, Mapping slots)
      : fd_(std::move(fd)), header_(std::move(header)), slots_(std::move(slots)) {}

  static Result<ShmSegment> map(OwnedFd fd, const WeightsConfig& config, Access access);
  static Result<std::optional<ShmSegment>> create(const WeightsConfig& config, std::uint64_t life);
  void take_over() const;

  OwnedFd fd_;
  Mapping header_;  // always writable: readers pin there
  Mapping slots_;
};

// Removes the family's name; nothing to do if there is none. kFailed, naming the publisher, if one
// is alive. Processes that have the segment open keep its memory.
Result<void> remove_segment(const std::string& name);

// Removes the segments whose family starts with `name_prefix` and that no process uses; returns how
// many were removed.
int remove_abandoned_segments(std::string_view name_prefix);

}  // namespace tandem::weights
