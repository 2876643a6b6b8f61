// The book-keeping of a segment store: how many payloads each segment holds, and when a segment may
// be deleted. A plain state machine of the store (segment_store.cc); it knows no bytes
// and no files. Threading: none of its own, its owner guards it with a mutex.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "runtime/wire/payload_ref.h"

namespace tandem::payload {

// A place in the store, in bytes, that reserve() gave to one payload.
struct Extent {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct SegmentLimits {
  std::uint64_t segment_bytes_max = 64ull << 20;  // a larger payload has a segment of its own
  std::uint64_t bytes_max = 1ull << 40;           // the limit of all segments together
};

// No store comes near it: a file with a higher number was put there by somebody else, and a store
// that has come to it, behind such a file, takes no payload.
inline constexpr std::uint32_t kSegmentMax = std::numeric_limits<std::uint32_t>::max() / 2;

class SegmentBook {
 public:
  explicit SegmentBook(SegmentLimits limits) : limits_(limits) {}

  // A segment that an earlier run of the store left, with nothing live in it. Later segments get
  // higher numbers, so it is sealed.
  void found(std::uint32_t segment, std::uint64_t bytes);
  // Places for payloads of these sizes, none of them empty (SS-3), in the open segment and the ones
  // after it. Nothing: together they are over bytes_max, or there are no numbers for them, and
  // nothing was reserved.
  std::optional<std::vector<Extent>> reserve(std::span<const std::uint64_t> sizes);
  // One of the two ends each extent that was reserved. CHECKed: the segment has one that is not
  // ended.
  void commit(const Extent& extent, std::uint64_t checksum);
  void abandon(const Extent& extent);
  // These work as SegmentStore's functions of the same names; `node` of the reference is not looked
  // at.
  bool holds(const wire::PayloadRef& payload) const;
  // Ignored where the segment does not exist.
  void retain(const wire::PayloadRef& payload);
  bool release(const wire::PayloadRef& payload);
  // The segments that SS-2 allows to be deleted.
  std::vector<std::uint32_t> reclaimable(std::uint32_t below) const;
  // Deletes a segment, whatever is live in it; the number is not used again. False: no such
  // segment.
  bool erase(std::uint32_t segment);
  // Whether each of so many payloads could have a segment of its own.
  bool has_numbers(std::size_t payloads) const {
    return open_ <= kSegmentMax && kSegmentMax - open_ >= payloads;
  }
  bool contains(const Extent& extent) const;  // within the reserved bytes of its segment
  std::uint32_t open_segment() const { return open_; }
  std::uint64_t bytes() const { return bytes_; }  // all segments, reserved ones included

 private:
  struct Live {  // a payload that was committed and not released
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
    auto operator<=>(const Live&) const = default;
  };
  // One segment that has not been deleted.
  struct Segment {
    std::uint64_t bytes = 0;  // reserved so far: the place of the next payload
    // The payloads for whose sake SS-2 keeps the segment.
    std::set<Live> live;
    std::uint64_t writing = 0;  // reserved, neither committed nor abandoned
  };
  const SegmentLimits limits_;
  // Segments by number. The open segment has an entry only once it holds something.
  std::map<std::uint32_t, Segment> segments_;
  std::uint32_t open_ = 0;  // the segment that takes payloads; all before it are sealed
  std::uint64_t bytes_ = 0;
};

}  // namespace tandem::payload
