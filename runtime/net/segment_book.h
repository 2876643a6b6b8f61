// How many payloads each segment holds, and when one may go: the book-keeping that the stores of
// segment_store.h share. A plain state machine; its owner guards it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "runtime/net/segment_store.h"

namespace tandem::runtime {

class SegmentBook {
 public:
  explicit SegmentBook(SegmentLimits limits) : limits_(limits) {}

  void found(std::uint32_t segment, std::uint64_t bytes);  // of an earlier life: sealed
  // Nothing: together they are over bytes_max.
  std::optional<std::vector<Extent>> reserve(std::span<const std::uint64_t> sizes);
  void commit(const Extent& extent);
  void abandon(const Extent& extent);
  void retain(std::uint32_t segment);
  void release(std::uint32_t segment);
  std::vector<std::uint32_t> reclaimable(std::uint32_t below) const;
  bool erase(std::uint32_t segment);  // false: no such segment
  bool contains(const Extent& extent) const;
  std::uint32_t open_segment() const { return open_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Segment {
    std::uint64_t bytes = 0;
    std::uint64_t live = 0;     // committed and not released
    std::uint64_t writing = 0;  // reserved, neither committed nor abandoned
  };
  const SegmentLimits limits_;
  std::map<std::uint32_t, Segment> segments_;
  std::uint32_t open_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tandem::runtime
