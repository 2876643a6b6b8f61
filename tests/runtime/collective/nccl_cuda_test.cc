// NCCL's communicators on GPU memory and streams: the emulator's, with the fake library, which
// reaches the memory from outside as work of the stream. Two ranks in this process, on one GPU.
//
// Tests runtime/collective/nccl_communicator.h.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::collective {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kBytes = 300001;

// The GPU is the emulated one, and its ranks may share it.
const int kChosen = ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1) +
                    ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

NcclStreamFunctions cuda_streams() {
  const device::CudaModule& module = **device::cuda_module();
  return {.create_event = module.create_event,
          .record_event = module.record_event,
          .event_done = module.event_done,
          .destroy_event = module.destroy_event};
}

struct Rank {
  device::Buffer device =
      device::Buffer::allocate(kBytes, "a test", device::MemoryKind::kDevice).value();
  device::Queue queue{device::DeviceKind::kCuda};
  NcclThread thread;
  NcclProcess process;
  std::unique_ptr<NcclCommunicator> communicator;

  void* native() const { return queue.stream().native; }
  void fill(const std::vector<std::byte>& bytes) {
    copy(queue.stream(), device.data(), bytes.data(), bytes.size());
  }
  std::vector<std::byte> content() {
    std::vector<std::byte> bytes(kBytes);
    copy(queue.stream(), bytes.data(), device.data(), bytes.size());
    synchronize(queue.stream());
    return bytes;
  }
  Result<NcclTicket> submit(NcclKind kind, int peer, Duration timeout) {
    return communicator->submit({.label = "a test",
                                 .transfers = {{kind, device.data(), kBytes, peer}},
                                 .stream = native(),
                                 .timeout = timeout});
  }
};

class NcclOnCuda : public testing::Test {
 protected:
  NcclOnCuda() {
    for (Rank& rank : ranks_)
      rank.process = {.api = fake_.api, .streams = cuda_streams(), .thread = &rank.thread};
  }
  void start() {
    const NcclUniqueId id = make_nccl_unique_id(ranks_[0].process, kNcclPatience).value();
    for (int i = 0; i < kRanks; ++i)
      ranks_[i].communicator =
          NcclCommunicator::start(
              ranks_[i].process,
              {.epoch = 1, .unique_id = id, .rank = i, .size = kRanks, .name = "job/weights"},
              kNcclPatience)
              .value();
  }
  ~NcclOnCuda() override { fake_.set_faults(""); }

  const FakeNccl fake_ = open_fake_nccl();
  Rank ranks_[kRanks];
};

// A broadcast sends the results of work that was queued on the stream before it; work that is
// queued afterwards reads the bytes that arrived.
TEST_F(NcclOnCuda, NC4DeviceMemoryTravelsInTheOrderOfTheStream) {
  start();
  for (int round = 0; round < 4; ++round) {
    const auto sent = bytes_of_rank(round % kRanks, round, kBytes);
    ranks_[round % kRanks].fill(sent);
    std::vector<NcclTicket> tickets;
    for (Rank& rank : ranks_)
      tickets.push_back(rank.submit(NcclKind::kBroadcast, round % kRanks, kNcclPatience).value());
    for (const NcclTicket& ticket : tickets) {
      const Result<void> done = ticket.wait();
      ASSERT_TRUE(done) << render(done.error());
    }
    for (Rank& rank : ranks_) EXPECT_EQ(rank.content(), sent);
  }
  const auto sent = bytes_of_rank(0, 9, kBytes);
  ranks_[0].fill(sent);
  const auto sends = ranks_[0].submit(NcclKind::kSend, 1, kNcclPatience);
  const auto receives = ranks_[1].submit(NcclKind::kReceive, 0, kNcclPatience);
  ASSERT_TRUE(sends && receives);
  // Each finishes without the other.
  for (Rank& rank : ranks_) EXPECT_TRUE(rank.communicator->finish(kNcclPatience));
  EXPECT_EQ(ranks_[1].content(), sent);
}

TEST_F(NcclOnCuda, NC3AfterAnAbortTheStreamAndTheMemoryAreFree) {
  fake_.set_faults("rank=0,op=broadcast,fault=slow,ms=60000");
  start();
  const auto sent = bytes_of_rank(0, 0, kBytes);  // read when the stream comes to it
  ranks_[0].fill(sent);
  const NcclTicket sends = ranks_[0].submit(NcclKind::kBroadcast, 0, kNcclPatience).value();
  const NcclTicket receives =
      ranks_[1].submit(NcclKind::kBroadcast, 0, std::chrono::milliseconds(100)).value();
  const Result<void> late = receives.wait();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimedOut);
  ranks_[0].communicator->abort("rank 1 has timed out");
  EXPECT_FALSE(sends.wait());
  for (Rank& rank : ranks_) {
    const auto other = bytes_of_rank(7, 7, kBytes);
    rank.fill(other);
    EXPECT_EQ(rank.content(), other);
  }
}

}  // namespace
}  // namespace tandem::collective
