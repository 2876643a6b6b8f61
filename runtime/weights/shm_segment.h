// The shared memory of one weight family: one file in /dev/shm with a header and the slots, each a
// whole version or, of kCudaIpc, the name of a block of GPU memory that holds it. Internal to
// runtime/weights.
//
// Who is alive is said by open-file-description locks on single bytes of the file: the kernel drops
// them however a process ends, and, unlike pids, they are never reused nor depend on a namespace.
// A segment appears under its name complete (it is linked there after it was filled in), and one
// whose link count is 0 has been given up.
//
// A slot is guarded like this (all atomics sequentially consistent). The publisher makes `sequence`
// odd, then looks whether any reader has pinned the slot; a reader pins it, then looks whether
// `sequence` is what it was, and even. So at least one sees the other: the publisher takes its
// claim back, or the reader its pin, and nobody writes what somebody reads (WT-1, WT-2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/file.h"
#include "runtime/weights/weights.h"

namespace tandem::runtime {

inline constexpr std::uint32_t kSlotsMax = 64;
inline constexpr std::uint32_t kReadersMax = 256;
inline constexpr std::uint32_t kPublisherLockByte = kReadersMax;  // bytes below it are the readers'

struct alignas(64) SegmentSlot {
  std::atomic<std::uint64_t> sequence;  // odd while the publisher writes
  std::atomic<std::uint32_t> offered;   // 1: version, checksum and the bytes are valid
  std::atomic<std::int64_t> version;
  std::atomic<std::uint64_t> checksum;
};

struct SegmentReader {
  std::atomic<std::int32_t> pid;      // for messages only
  std::atomic<std::uint32_t> pinned;  // 0: nothing; else 1 + the slot
};

struct SegmentHeader {
  std::uint64_t magic;
  std::uint64_t slots;
  std::uint64_t arena_bytes;
  std::uint64_t layout_hash;
  std::uint64_t on_gpu;  // 1: kCudaIpc
  std::atomic<std::uint64_t> publisher_life;
  std::atomic<std::int32_t> publisher_pid;  // for messages only
  std::atomic<std::uint32_t> releases;      // a futex: counts pins given up
  SegmentSlot slot[kSlotsMax];
  SegmentReader reader[kReadersMax];
};

// An mmap with one owner.
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

// What the slot offers now; none while it is being written.
struct SlotOffer {
  PolicyVersion version;
  std::uint64_t checksum = 0;
  bool operator==(const SlotOffer&) const = default;
};
std::optional<SlotOffer> offer_of(const SegmentSlot& slot);
std::optional<PolicyVersion> offered_version(const SegmentSlot& slot);

class ShmSegment {
 public:
  enum class Access { kReadSlots, kWriteSlots };

  static std::filesystem::path path_of(const std::string& name);

  // The segment of that name as it is; none if there is none. kInvalid if it has another layout or
  // number of slots, or is no segment at all.
  static Result<std::optional<ShmSegment>> open(const WeightsConfig& config, Access access);

  // The publisher's: takes over the segment that a dead one left, if it has our layout, else makes
  // a new one in its place. Holds the publisher's lock from then on.
  static Result<ShmSegment> open_or_create(const WeightsConfig& config);

  SegmentHeader& header() const;
  std::span<std::byte> slot_bytes(std::size_t slot) const;

  // Without waiting; false if someone else holds it. Held until the segment is closed.
  bool lock_byte(std::uint32_t byte, std::uint32_t count = 1) const;
  bool byte_is_locked_by_another(std::uint32_t byte) const;

  bool given_up() const;  // no name leads to it any more

  // A pin was given up: wakes a publisher that waits for one.
  void tell_release() const;
  // Until header().releases is not `seen` any more, at most `timeout`.
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

// Takes the family's name away; nothing to do if it has none. kFailed, naming the publisher, if one
// lives.
Result<void> remove_segment(const std::string& name);

// Removes the segments whose family starts with `name_prefix` and that nobody has open.
int remove_abandoned_segments(std::string_view name_prefix);

}  // namespace tandem::runtime
