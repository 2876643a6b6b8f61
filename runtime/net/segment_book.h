// How many payloads each segment holds, and when one may go: the book-keeping that the stores of
// segment_store.h share. A plain state machine; its owner guards it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "runtime/net/segment_store.h"

namespace tandem::runtime {

class SegmentBook {
 public:
  explicit SegmentBook(SegmentLimits limits) : limits_(limits) {}

  void found(std::uint32_t segment, std::uint64_t bytes);  // of an earlier life: sealed
  // Of payloads none of which is empty (SS-3). Nothing: together they are over bytes_max.
  std::optional<std::vector<Extent>> reserve(std::span<const std::uint64_t> sizes);
  void commit(const Extent& extent, std::uint64_t checksum);
  void abandon(const Extent& extent);
  bool holds(const PayloadRef& payload) const;
  void retain(const PayloadRef& payload);
  bool release(const PayloadRef& payload);
  std::vector<std::uint32_t> reclaimable(std::uint32_t below) const;
  bool erase(std::uint32_t segment);  // false: no such segment
  bool contains(const Extent& extent) const;
  std::uint32_t open_segment() const { return open_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Live {  // a payload that was committed and not released
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
    auto operator<=>(const Live&) const = default;
  };
  struct Segment {
    std::uint64_t bytes = 0;
    std::set<Live> live;
    std::uint64_t writing = 0;  // reserved, neither committed nor abandoned
  };
  const SegmentLimits limits_;
  std::map<std::uint32_t, Segment> segments_;
  std::uint32_t open_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tandem::runtime
