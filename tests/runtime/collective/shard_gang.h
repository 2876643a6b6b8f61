// Ranks that share shards by NCCL for tests, all in this process, each with a thread of NCCL of its
// own; and buckets whose sums tell the order in which they were made.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/rng.h"
#include "runtime/collective/nccl_shards.h"
#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::collective {

using Floats = std::vector<float>;

// The numbers that `rank` contributes to `bucket`. They have many magnitudes, so that each order of
// adding them rounds in its own way.
inline Floats floats_of_rank(std::uint64_t seed, int rank, int bucket, std::int64_t count) {
  Rng rng(
      derive_seed(seed, {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(bucket)}));
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const auto bits = rng.next();
    value = static_cast<float>(static_cast<std::int32_t>(bits)) /
            static_cast<float>(1u << (bits >> 32) % 24);
  }
  return values;
}

// The sums of all ranks' floats, added in rank order or against it.
inline Floats summed(std::uint64_t seed, int ranks, int bucket, std::int64_t count,
                     bool backwards = false) {
  const auto nth = [&](int i) {
    return floats_of_rank(seed, backwards ? ranks - 1 - i : i, bucket, count);
  };
  Floats sum = nth(0);
  for (int i = 1; i < ranks; ++i) {
    const Floats more = nth(i);
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] = sum[at] + more[at];
  }
  return sum;
}

inline bool same_floats(const float* a, const float* b, std::int64_t count) {
  return count == 0 || std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

using ShardExchanges = std::vector<std::unique_ptr<ShardExchange>>;

// The objects that an exchange by NCCL uses.
struct NcclShardProcesses {
  std::vector<std::unique_ptr<NcclThread>> threads;
};

inline ShardExchanges make_shards_by_nccl(NcclShardProcesses& processes, const FakeNccl& fake,
                                          int size, const NcclShardsConfig& like) {
  ShardExchanges ranks;
  NcclUniqueId id;
  for (int rank = 0; rank < size; ++rank) {
    processes.threads.push_back(std::make_unique<NcclThread>());
    const NcclProcess process{
        .api = fake.api, .streams = fake.streams, .thread = processes.threads.back().get()};
    if (rank == 0) id = make_nccl_unique_id(process, kNcclPatience).value();
    auto communicator =
        NcclCommunicator::start(
            process,
            {.epoch = 1, .unique_id = id, .rank = rank, .size = size, .name = "job/gradients"},
            kNcclPatience)
            .value();
    ranks.push_back(make_nccl_shards({.communicator = std::move(communicator),
                                      .rank = rank,
                                      .size = size,
                                      .bucket_floats_max = like.bucket_floats_max,
                                      .timeout = like.timeout,
                                      .device = like.device,
                                      .sum = like.sum})
                        .value());
  }
  return ranks;
}

// Runs `body` once per rank, each on a thread of its own.
inline void on_each_rank(ShardExchanges& ranks, const std::function<void(ShardExchange&)>& body) {
  std::vector<std::thread> threads;
  for (auto& rank : ranks) threads.emplace_back([&] { body(*rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tandem::collective
