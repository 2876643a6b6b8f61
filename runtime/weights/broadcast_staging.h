// The memory that NCCL itself sends from and receives into: two buckets of one epoch, used in turn
// and registered with its communicator, and the parts of a version that pass through them. Not
// here: where the bytes come from and go to. Internal to runtime/weights; the thread of the epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/nccl_memory.h"
#include "runtime/device/queue.h"
#include "runtime/weights/weights.h"

namespace tandem::runtime {

class BroadcastStaging {
 public:
  static Result<std::unique_ptr<BroadcastStaging>> make(const WeightsConfig& config);
  BroadcastStaging(const WeightsConfig& config, std::shared_ptr<NcclMemory> memory);

  // For the epoch to register; all ranks have as much.
  const std::shared_ptr<NcclMemory>& memory() const { return memory_; }

  // The parts of a version, from 0: each but the last one is a whole bucket.
  std::size_t parts() const { return (arena_bytes_ + bucket_bytes_ - 1) / bucket_bytes_; }
  std::size_t offset(std::size_t part) const { return part * bucket_bytes_; }
  std::size_t bytes(std::size_t part) const;
  std::byte* bucket(std::size_t part) const;

  // Has the part's bucket broadcast from rank 0, within the configured stall_max.
  Result<NcclTicket> submit(NcclCommunicator& communicator, PolicyVersion version,
                            std::size_t part) const;

 private:
  const std::size_t arena_bytes_;
  const std::size_t bucket_bytes_;
  const Duration timeout_;
  const std::shared_ptr<NcclMemory> memory_;  // of both
  const Queue queue_;  // for NCCL alone, which wants no other work between its own
};

}  // namespace tandem::runtime
