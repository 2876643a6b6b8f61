// The slots of one segment, pinned for any number of copies at the same time: one reader's entry
// (shm_reader.h) pins a slot from its first copy to its last. Every slot in use has an entry of its
// own, so a pin never waits for another. Internal to runtime/weights; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/weights/shm_reader.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/weights.h"

namespace tandem::runtime {

class SharedPins {
 public:
  // Opens the segment of that name once more. kFailed if there is none, or too many readers.
  static Result<SharedPins> open(const WeightsConfig& config);

  // The slot that holds exactly this version, pinned; none if no slot offers it. Each acquire()
  // needs a release() of its own.
  std::optional<std::size_t> acquire(const SlotOffer& wanted);
  void release(std::size_t slot);

  // Of a pinned slot. One that was forgotten is readable, but not offered any more.
  bool offered(std::size_t slot) const;
  std::span<const std::byte> bytes(std::size_t slot) const { return segment_->slot_bytes(slot); }

  std::vector<SlotOffer> offers() const;
  std::uint64_t publisher_life() const { return segment_->header().publisher_life; }

 private:
  struct Pin {
    ShmReader reader;
    std::optional<std::size_t> slot;
    std::uint64_t copies = 0;
  };

  SharedPins(std::unique_ptr<ShmSegment> segment, std::vector<Pin> pins)
      : segment_(std::move(segment)), pins_(std::move(pins)) {}
  Pin* pin_of(std::size_t slot);
  SlotOffer content(std::size_t pinned) const;

  std::unique_ptr<ShmSegment> segment_;
  std::vector<Pin> pins_;  // as many as the segment has slots
};

}  // namespace tandem::runtime
