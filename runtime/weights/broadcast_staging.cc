#include "runtime/weights/broadcast_staging.h"

#include <algorithm>
#include <utility>

#include "runtime/device/memory.h"

namespace tandem::weights {
namespace {

// Two, so that one is filled or emptied while NCCL works on the other.
constexpr std::uint64_t kBuckets = 2;
// The epoch in use and the one that forms (BG-1).
constexpr std::uint64_t kEpochsAtATime = 2;

std::uint64_t bytes_of_bucket(const WeightsConfig& config) {
  // A bucket larger than the version would never be filled.
  return std::min(std::max<std::uint64_t>(config.bucket_bytes, 1), config.layout.arena_bytes);
}

std::uint64_t bytes_of_epoch(const WeightsConfig& config) {
  return kBuckets * device::align_up(bytes_of_bucket(config));
}

}  // namespace

std::uint64_t broadcast_bytes_of_publisher(const WeightsConfig& config) {
  return kEpochsAtATime * collective::nccl_memory_taken(bytes_of_epoch(config));
}

std::uint64_t broadcast_bytes_of_subscriber(const WeightsConfig& config) {
  return broadcast_bytes_of_publisher(config) + config.layout.arena_bytes;
}

Result<std::unique_ptr<BroadcastStaging>> BroadcastStaging::make(const WeightsConfig& config) {
  const collective::NcclProcess& process = *config.broadcasting->nccl;
  auto memory = collective::NcclMemory::allocate(process, bytes_of_epoch(config),
                                                 "the buckets of broadcasts of weights",
                                                 process.thread->grace() / 2);
  if (!memory) return memory.error();
  return std::make_unique<BroadcastStaging>(config, *std::move(memory));
}

BroadcastStaging::BroadcastStaging(const WeightsConfig& config,
                                   std::shared_ptr<collective::NcclMemory> memory)
    : arena_bytes_(config.layout.arena_bytes),
      bucket_bytes_(bytes_of_bucket(config)),
      timeout_(config.stall_max),
      memory_(std::move(memory)),
      queue_(config.broadcasting->device) {}

std::byte* BroadcastStaging::bucket(std::size_t part) const {
  return memory_->data() + part % kBuckets * device::align_up(bucket_bytes_);
}

std::size_t BroadcastStaging::bytes(std::size_t part) const {
  return std::min(bucket_bytes_, arena_bytes_ - offset(part));
}

// Without a GPU there is no stream; the fake library takes any address for one.
Result<collective::NcclTicket> BroadcastStaging::submit(collective::NcclCommunicator& communicator,
                                                        PolicyVersion version,
                                                        std::size_t part) const {
  void* const stream = queue_.stream().native;
  return communicator.submit(
      {.label = "version " + std::to_string(version.value) + ", bucket " +
                std::to_string(part + 1) + " of " + std::to_string(parts()),
       .transfers = {{collective::NcclKind::kBroadcast, bucket(part), bytes(part), 0}},
       .stream = stream != nullptr ? stream : memory_->data(),
       .timeout = timeout_});
}

}  // namespace tandem::weights
