#include "runtime/weights/broadcast_staging.h"

#include <algorithm>

namespace tandem::runtime {
namespace {

constexpr std::uint64_t kBuckets = 2;
constexpr std::uint64_t kEpochsAtATime = 2;

std::uint64_t bytes_of_bucket(const WeightsConfig& config) {
  return std::min(std::max<std::uint64_t>(config.bucket_bytes, 1), config.layout.arena_bytes);
}

}  // namespace

std::uint64_t broadcast_bytes_of_publisher(const WeightsConfig& config) {
  return kEpochsAtATime * kBuckets * bytes_of_bucket(config);
}

std::uint64_t broadcast_bytes_of_subscriber(const WeightsConfig& config) {
  return broadcast_bytes_of_publisher(config) + config.layout.arena_bytes;
}

Result<std::unique_ptr<BroadcastStaging>> BroadcastStaging::make(const WeightsConfig& config) {
  const auto bucket = [&] {
    return Buffer::allocate(bytes_of_bucket(config), "a bucket of a broadcast of weights",
                            operand_place(config.broadcasting->device));
  };
  Result<Buffer> even = bucket();
  if (!even) return even.error();
  Result<Buffer> odd = bucket();
  if (!odd) return odd.error();
  return std::make_unique<BroadcastStaging>(config, *std::move(even), *std::move(odd));
}

BroadcastStaging::BroadcastStaging(const WeightsConfig& config, Buffer even, Buffer odd)
    : arena_bytes_(config.layout.arena_bytes),
      timeout_(config.stall_max),
      buckets_{std::move(even), std::move(odd)},
      queue_(config.broadcasting->device) {}

std::size_t BroadcastStaging::bytes(std::size_t part) const {
  return std::min(bucket_bytes(), arena_bytes_ - offset(part));
}

// Without a GPU there is no stream; the fake library takes any address for one.
Result<NcclTicket> BroadcastStaging::submit(NcclCommunicator& communicator, PolicyVersion version,
                                            std::size_t part) const {
  void* const stream = queue_.stream().native;
  return communicator.submit({.label = "version " + std::to_string(version.value) + ", bucket " +
                                       std::to_string(part + 1) + " of " + std::to_string(parts()),
                              .transfers = {{NcclKind::kBroadcast, bucket(part), bytes(part), 0}},
                              .stream = stream != nullptr ? stream : buckets_[0].data(),
                              .timeout = timeout_});
}

}  // namespace tandem::runtime
