// The memory of a segment's versions: the segment itself, or blocks of the publisher's GPU memory
// whose names are in the segment (kCudaIpc). The segment decides who may read or write a slot, and
// when (shm_segment.h). Internal to runtime/weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "runtime/base/result.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// The publisher's side. Borrows the segment, which outlives the writer.
class SlotWriter {
 public:
  virtual ~SlotWriter() = default;
  // Copies a whole version into the slot and returns its checksum64. The copy is done when the call
  // returns. The caller has claimed the slot.
  virtual std::uint64_t write(std::size_t slot, std::span<const std::byte> arena) = 0;
  // checksum64 of the bytes that are in the slot now, whatever they should be; none where they
  // cannot be read back.
  virtual std::optional<std::uint64_t> checksum_of(std::size_t slot) = 0;
};

// A subscriber's side. Borrows the segment, which outlives the reader.
class SlotReader {
 public:
  virtual ~SlotReader() = default;
  // Called around the reads of a slot that was pinned. A slot is open no longer than needed: its
  // owner must not free memory that another process has open (shared_block.h). Other threads may
  // use the bytes that were read once the slot is closed.
  virtual Result<void> open(std::size_t slot) = 0;
  virtual void close() = 0;
  // Copies bytes of the open slot, from `offset` on, to the beginning of `part`, at least one, and
  // returns as many bytes for the caller to hash: those that arrived, or the slot's own while they
  // are in the cache. The hash reads the slot after the copy did, so it sees every wrong write that
  // the copy saw.
  virtual std::span<const std::byte> read(std::size_t offset, std::span<std::byte> part) = 0;
};

// kOutOfMemory where the GPU has no room for `slots` versions. With kCudaIpc all slots are
// withdrawn first: the versions of an earlier publisher ended with its GPU memory.
Result<std::unique_ptr<SlotWriter>> make_slot_writer(const WeightsConfig& config,
                                                     const ShmSegment& segment);
Result<std::unique_ptr<SlotReader>> make_slot_reader(const WeightsConfig& config,
                                                     const ShmSegment& segment);

}  // namespace tandem::weights
