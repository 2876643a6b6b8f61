// Where the versions of a segment's slots lie: in the segment itself, or in blocks of the
// publisher's GPU memory whose names are in the segment (kCudaIpc). Who may read or write a slot,
// and when, is the segment's (shm_segment.h). Internal to runtime/weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/result.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/weights.h"

namespace tandem::runtime {

// The publisher's side. It borrows the segment.
class SlotWriter {
 public:
  virtual ~SlotWriter() = default;
  // Copies a whole version into the slot and gives its checksum64; done when it returns.
  virtual std::uint64_t write(std::size_t slot, std::span<const std::byte> arena) = 0;
};

// A subscriber's side. It borrows the segment.
class SlotReader {
 public:
  virtual ~SlotReader() = default;
  // Around the reads of a slot that was pinned, and no longer: an owner is not to free what
  // somebody has open (shared_block.h). Other threads may use what was read once it is closed.
  virtual Result<void> open(std::size_t slot) = 0;
  virtual void close() = 0;
  // Copies from the open slot at `offset` the beginning of `part`, at least a byte, and returns as
  // many bytes for the caller to hash: those that arrived, or the slot's own while they are in the
  // cache. The hash reads the slot after the copy did: it sees every wrong write that the copy saw.
  virtual std::span<const std::byte> read(std::size_t offset, std::span<std::byte> part) = 0;
};

// kOutOfMemory where the GPU has no room for `slots` versions. Leaves nothing offered where what a
// dead publisher left went with it.
Result<std::unique_ptr<SlotWriter>> make_slot_writer(const WeightsConfig& config,
                                                     const ShmSegment& segment);
Result<std::unique_ptr<SlotReader>> make_slot_reader(const WeightsConfig& config,
                                                     const ShmSegment& segment);

}  // namespace tandem::runtime
