// The memory that NCCL sends from and receives into: two buckets of one epoch, used in turn and
// registered with its communicator, and the split of a version into parts that pass through them.
// Not responsible for the source or the destination of the bytes. Internal to runtime/weights; used
// by the epoch's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/nccl_memory.h"
#include "runtime/device/queue.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

class BroadcastStaging {
 public:
  // Has NCCL allocate the buckets, within half of the grace of its thread. The error is
  // NcclMemory's.
  static Result<std::unique_ptr<BroadcastStaging>> make(const WeightsConfig& config);
  BroadcastStaging(const WeightsConfig& config, std::shared_ptr<collective::NcclMemory> memory);

  // The memory that the epoch registers with its communicator; all ranks have equally many bytes.
  const std::shared_ptr<collective::NcclMemory>& memory() const { return memory_; }

  // A version is sent in parts, counted from 0; each but the last one fills a whole bucket. Offsets
  // and sizes are in bytes. Parts with even numbers pass through one bucket and odd ones through
  // the other.
  std::size_t parts() const { return (arena_bytes_ + bucket_bytes_ - 1) / bucket_bytes_; }
  std::size_t offset(std::size_t part) const { return part * bucket_bytes_; }
  std::size_t bytes(std::size_t part) const;
  std::byte* bucket(std::size_t part) const;

  // Queues the broadcast of the part's bucket from rank 0 to the others, within
  // WeightsConfig::stall_max. The bucket must not be touched until the ticket is done.
  Result<collective::NcclTicket> submit(collective::NcclCommunicator& communicator,
                                        PolicyVersion version, std::size_t part) const;

 private:
  const std::size_t arena_bytes_;
  const std::size_t bucket_bytes_;
  const Duration timeout_;
  const std::shared_ptr<collective::NcclMemory> memory_;  // both buckets
  const device::Queue queue_;  // for NCCL alone, so that no other work runs between its operations
};

}  // namespace tandem::weights
