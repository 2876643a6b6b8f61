// Pins slots of one segment for any number of copies at the same time. One reader's entry
// (shm_reader.h) pins a slot from the first copy of it to the last. There is an entry for every
// slot, so a pin never waits for another. Internal to runtime/weights; used by one thread at a
// time.
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
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

class SharedPins {
 public:
  // Opens the segment of config.name once more and takes an entry for each of its slots. kFailed if
  // there is no segment, or there are too many readers.
  static Result<SharedPins> open(const WeightsConfig& config);

  // Pins the slot that holds exactly this version, with this checksum, and returns its index; none
  // if no slot offers it. Each acquire() needs a release() of its own.
  std::optional<std::size_t> acquire(const WeightOffer& wanted);
  void release(std::size_t slot);

  // Both may be called only for a pinned slot. A version that was forgotten stays readable, but is
  // not offered any more.
  bool offered(std::size_t slot) const;
  std::span<const std::byte> bytes(std::size_t slot) const { return segment_->slot_bytes(slot); }

  // The versions that the segment offers at present.
  std::vector<WeightOffer> offers() const;
  std::uint64_t publisher_life() const { return segment_->header().publisher_life; }

 private:
  // One entry in the segment: `slot` is none while it pins no slot, `copies` counts acquire()
  // calls.
  struct Pin {
    ShmReader reader;
    std::optional<std::size_t> slot;
    std::uint64_t copies = 0;
  };

  SharedPins(std::unique_ptr<ShmSegment> segment, std::vector<Pin> pins)
      : segment_(std::move(segment)), pins_(std::move(pins)) {}
  Pin* pin_of(std::size_t slot);
  WeightOffer content(std::size_t pinned) const;

  std::unique_ptr<ShmSegment> segment_;
  std::vector<Pin> pins_;  // as many as the segment has slots
};

}  // namespace tandem::weights
