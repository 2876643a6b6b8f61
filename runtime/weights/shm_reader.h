// One reader of a segment: it has an entry there, by which it pins one slot at a time. A pinned
// slot is not replaced (shm_segment.h says why), and a pin ends with its process. How the bytes are
// used is the reader's own matter. Internal to runtime/weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

class ShmReader {
 public:
  // Takes a free entry of `segment`, which is borrowed, must outlive the reader, and keeps the
  // entry until the segment is closed. A caller that enters one ShmSegment several times passes its
  // last entry: a lock does not shut out its own holder, so the search goes on behind that entry.
  // kFailed if there are too many readers.
  static Result<ShmReader> enter(const ShmSegment& segment, const WeightsConfig& config,
                                 const ShmReader* last = nullptr);

  // Pins the slot that offers `version` and returns its index; none if no slot offers it. No slot
  // may be pinned before the call.
  std::optional<std::size_t> pin(PolicyVersion version) const;
  // Ends the pin and wakes a publisher that waits for a place.
  void unpin() const;

 private:
  ShmReader(const ShmSegment& segment, std::uint32_t entry) : segment_(&segment), entry_(entry) {}

  const ShmSegment* segment_;
  std::uint32_t entry_;
};

}  // namespace tandem::weights
