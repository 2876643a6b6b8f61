// One reader of a segment: its entry there, by which it pins a slot at a time. A pinned slot is not
// replaced (shm_segment.h says why), and a pin ends with its process. What is done with the bytes
// is the reader's own business. Internal to runtime/weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/weights.h"

namespace tandem::runtime {

class ShmReader {
 public:
  // Takes a free entry of `segment`, which is borrowed and keeps the entry until it is closed.
  // Whoever enters one ShmSegment several times names the last entry: a lock does not shut out its
  // own holder. kFailed if there are too many readers.
  static Result<ShmReader> enter(const ShmSegment& segment, const WeightsConfig& config,
                                 const ShmReader* last = nullptr);

  // Pins the slot that offers `version`, none if there is none; nothing may be pinned before.
  std::optional<std::size_t> pin(PolicyVersion version) const;
  void unpin() const;

 private:
  ShmReader(const ShmSegment& segment, std::uint32_t entry) : segment_(&segment), entry_(entry) {}

  const ShmSegment* segment_;
  std::uint32_t entry_;
};

}  // namespace tandem::runtime
