// Broadcasts of weights through GPU memory: the emulator's, with the fake library. The other
// promises of a group are tested in broadcast_test.cc.
//
// Tests runtime/weights/broadcast.h.
#include <gtest/gtest.h>

#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "tests/runtime/weights/broadcast_group.h"

namespace tandem::weights {
namespace {

const int kGpuIsEmulated = ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1);

// An engine's weights, on the GPU.
class Sink {
 public:
  std::span<std::byte> span() const { return {memory_.data(), memory_.size()}; }
  std::vector<std::byte> content() const {
    std::vector<std::byte> bytes(kGroupArenaBytes);
    copy(queue_.stream(), bytes.data(), memory_.data(), bytes.size());
    synchronize(queue_.stream());
    return bytes;
  }

 private:
  const device::Buffer memory_ =
      device::Buffer::allocate(kGroupArenaBytes, "a sink", device::MemoryKind::kDevice).value();
  const device::Queue queue_{device::DeviceKind::kCuda};
};

// Installs the version; whether it came by broadcast.
bool install(WeightSubscriber& subscriber, std::int64_t version, const Sink& sink) {
  EXPECT_TRUE(subscriber.begin(v(version), sink.span()));
  bool by_broadcast = false;
  EXPECT_TRUE(comes_true([&] {
    const auto progress = subscriber.progress(10'000);
    EXPECT_TRUE(progress);
    if (progress) by_broadcast = progress->arrives_by_itself;
    return !progress || progress->complete;
  }));
  return by_broadcast;
}

TEST(BroadcastOnCuda, WB1VersionsArriveInGpuMemoryByBroadcastAndByFetch) {
  BroadcastGroup group(2, collective::kNcclPatience, device::DeviceKind::kCuda);
  ASSERT_TRUE(group.start(1, {1, 2}) && group.use(1));
  const Sink sinks[2];
  for (std::int64_t version = 1; version <= 3; ++version) {
    group.publish_to({1, 2}, version);
    for (const int member : {1, 2}) {
      EXPECT_TRUE(install(group.subscriber(member), version, sinks[member - 1]));
      EXPECT_TRUE(sinks[member - 1].content() == weights_of(version)) << version;
    }
  }
  EXPECT_FALSE(install(group.subscriber(1), 2, sinks[0]));  // the spare has the third one
  EXPECT_TRUE(sinks[0].content() == weights_of(2));
}

TEST(BroadcastOnCuda, WB1WhatIsDamagedOnItsWayIsFetched) {
  BroadcastGroup group(1, collective::kNcclPatience, device::DeviceKind::kCuda);
  the_fake_nccl().set_faults("rank=1,op=broadcast,at=3,fault=corrupt");
  ASSERT_TRUE(group.start(1, {1}) && group.use(1));
  group.publish_to({1}, 1);
  const Sink sink;
  ASSERT_TRUE(group[1].told(EventKind::kFailed, 1));
  EXPECT_TRUE(holds(group[1].event(EventKind::kFailed, 1).message, "came damaged by broadcast 1"));
  EXPECT_FALSE(install(group.subscriber(1), 1, sink));
  EXPECT_TRUE(sink.content() == weights_of(1));
}

}  // namespace
}  // namespace tandem::weights
