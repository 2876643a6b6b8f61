// Shards of buckets in GPU memory: the emulator's, which does no queued work before a thread waits
// for it, so that a missing wait shows. All ranks are in this process.
//
// Tests runtime/collective/shard_exchange.h.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/ops/sum_pieces.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "tests/runtime/collective/shard_gang.h"
#include "tests/seeds.h"

namespace tandem::collective {
namespace {

// The GPU is the emulated one, and its ranks may share it.
const int kChosen = ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1) +
                    ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

constexpr std::int64_t kFloats = 1700;

void sum_on_gpu(const device::Stream& stream, std::span<const float* const> pieces, float* out,
                std::int64_t count) {
  std::vector<device::TensorView> views;
  for (const float* piece : pieces) views.push_back(device::tensor(piece, {count}));
  kernels::sum_pieces(stream, {.pieces = views, .out = device::tensor(out, {count})});
}

FakeNccl fake_on_cuda() {
  const device::CudaModule& module = **device::cuda_module();
  FakeNccl fake = open_fake_nccl();
  fake.streams = {.create_event = module.create_event,
                  .record_event = module.record_event,
                  .event_done = module.event_done,
                  .destroy_event = module.destroy_event};
  return fake;
}

struct DeviceBucket {
  device::Buffer memory =
      device::Buffer::allocate(kFloats * sizeof(float), "a test", device::MemoryKind::kDevice)
          .value();
  Floats host;

  device::TensorView view() const {
    return device::tensor(reinterpret_cast<const float*>(memory.data()), {kFloats});
  }
};

// The buckets are filled by one stream, reduced, and read by another; then they are gathered and
// read again bucket by bucket, with no wait but for the last copy.
void share_buckets(ShardExchange& exchange, std::uint64_t seed) {
  const device::Queue producer(device::DeviceKind::kCuda), consumer(device::DeviceKind::kCuda);
  std::vector<DeviceBucket> buckets(5);
  std::vector<Floats> shards(buckets.size(), Floats(kFloats)), all = shards;
  const ShardRange own = shard_of(kFloats, exchange.rank(), exchange.size());
  const auto own_bytes = static_cast<std::size_t>(own.size()) * sizeof(float);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    DeviceBucket& bucket = buckets[i];
    bucket.host = floats_of_rank(seed, exchange.rank(), static_cast<int>(i), kFloats);
    copy(producer.stream(), bucket.memory.data(), bucket.host.data(), bucket.memory.size());
    ASSERT_TRUE(exchange.reduce_scatter(bucket.view(), producer.stream()));
  }
  ASSERT_TRUE(exchange.hold_back(consumer.stream(), buckets.size()));
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    copy(consumer.stream(), shards[i].data(), buckets[i].view().f32() + own.begin, own_bytes);
    ASSERT_TRUE(exchange.all_gather(buckets[i].view(), consumer.stream()));
  }
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    ASSERT_TRUE(exchange.hold_back(producer.stream(), buckets.size() + i + 1));
    copy(producer.stream(), all[i].data(), buckets[i].memory.data(), buckets[i].memory.size());
  }
  const auto done = exchange.wait();
  ASSERT_TRUE(done) << render(done.error());
  synchronize(producer.stream());
  synchronize(consumer.stream());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Floats sum = summed(seed, exchange.size(), static_cast<int>(i), kFloats);
    EXPECT_TRUE(same_floats(shards[i].data(), sum.data() + own.begin, own.size())) << i;
    EXPECT_TRUE(same_floats(all[i].data(), sum.data(), kFloats)) << i;
  }
}

TEST(ShardsOnCuda, SH1SumsHaveTheBitsOfRankOrderInTheOrderOfTheStreamsSH4) {
  ASSERT_TRUE(device::cuda_module());
  const FakeNccl fake = fake_on_cuda();
  for (const int size : {1, 2, 3, 4}) {
    for_seeds(3, [&](std::uint64_t seed) {
      NcclShardProcesses processes;
      ShardExchanges ranks = make_shards_by_nccl(processes, fake, size,
                                                 {.communicator = nullptr,
                                                  .bucket_floats_max = kFloats,
                                                  .timeout = kNcclPatience,
                                                  .device = device::DeviceKind::kCuda,
                                                  .sum = sum_on_gpu});
      on_each_rank(ranks, [&](ShardExchange& exchange) { share_buckets(exchange, seed); });
    });
  }
}

}  // namespace
}  // namespace tandem::collective
