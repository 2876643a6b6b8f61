// Versions go by the fake NCCL to a peer in this process, which takes them as vLLM's workers do.
#include "runtime/weights/tensor_broadcast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <thread>

#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::weights {
namespace {

using namespace std::chrono_literals;
using collective::NcclCommunicator;
using collective::NcclKind;

// Both ranks are in this process.
const int kSharedGpu = ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                       ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

struct Side {
  collective::FakeNccl fake = collective::open_fake_nccl();
  collective::NcclThread thread;
  collective::NcclProcess process{.api = fake.api, .streams = fake.streams, .thread = &thread};
};

// Rank 1 of 2.
struct Peer : Side {
  std::unique_ptr<NcclCommunicator> communicator;

  Result<void> join(const collective::NcclUniqueId& id, Duration timeout = 30s) {
    auto started = NcclCommunicator::start(
        process, {.epoch = 1, .unique_id = id, .rank = 1, .size = 2, .name = "peer"}, timeout);
    communicator = *std::move(started);
    if (auto ready = communicator->wait_started(); !ready) return ready;
    float first = 0;
    return perform(NcclKind::kAllReduce, std::as_writable_bytes(std::span(&first, 1)));
  }
  Result<void> perform(NcclKind kind, std::span<std::byte> bytes) {
    const auto ticket = communicator->submit({.label = "peer",
                                              .transfers = {{kind, bytes.data(), bytes.size(), 0}},
                                              .stream = this,
                                              .timeout = 30s});
    return ticket ? ticket->wait() : Result<void>(ticket.error());
  }
};

// Tensors with other bytes each.
struct Tensors {
  std::vector<std::vector<std::byte>> all;
  explicit Tensors(const std::vector<std::size_t>& sizes) {
    for (const std::size_t bytes : sizes)
      all.push_back(collective::bytes_of_rank(0, static_cast<int>(all.size()), bytes));
  }
  std::vector<std::span<const std::byte>> spans() const { return {all.begin(), all.end()}; }
  std::vector<std::byte> joined(std::size_t first, std::size_t last) const {
    std::vector<std::byte> bytes;
    for (std::size_t i = first; i < last; ++i)
      bytes.insert(bytes.end(), all[i].begin(), all[i].end());
    return bytes;
  }
};

TensorBroadcastConfig config_of(const Side& side, bool packed, Duration timeout = 30s) {
  return {.nccl = &side.process,
          .device = device::DeviceKind::kCpu,
          .name = "us",
          .packed = packed,
          .chunk_bytes = 100,
          .timeout = timeout};
}

// A tensor is added, and the chunk ends where it has more than its size.
TEST(TensorBroadcast, ChunksEndBehindTheTensorByWhichTheyAreTooLarge) {
  using Ends = std::vector<std::size_t>;
  const auto ends = [](const std::vector<std::size_t>& sizes, std::size_t chunk) {
    return chunk_ends(Tensors(sizes).spans(), chunk);
  };
  EXPECT_EQ(ends({40, 60, 1, 300, 100}, 100), (Ends{3, 4, 5}));
  EXPECT_EQ(ends({100}, 100), (Ends{1}));
  EXPECT_EQ(ends({101, 5}, 100), (Ends{1, 2}));
  EXPECT_EQ(ends({5, 6, 7}, 0), (Ends{1, 2, 3})) << "one by one";
  EXPECT_EQ(ends({5, 6, 7}, 1000), (Ends{3}));
}

TEST(TensorBroadcast, APeerGetsEachVersionPackedOrOneByOne) {
  const Tensors tensors({40, 60, 1, 300, 100});
  for (const bool packed : {false, true}) {
    const Side side;
    TensorBroadcast broadcast(config_of(side, packed));
    const auto id = broadcast.meet();
    ASSERT_TRUE(id) << id.error().message;
    const auto chunks = chunk_ends(tensors.spans(), packed ? 100 : 0);
    auto peer = std::async(std::launch::async, [&]() -> std::vector<std::vector<std::byte>> {
      Peer other;
      if (!other.join(*id)) return {};
      std::vector<std::vector<std::byte>> got;
      for (int version = 0; version < 2; ++version)
        for (std::size_t i = 0; i < chunks.size(); ++i) {
          got.push_back(tensors.joined(i == 0 ? 0 : chunks[i - 1], chunks[i]));
          std::ranges::fill(got.back(), std::byte{0});
          if (!other.perform(NcclKind::kBroadcast, got.back())) return {};
        }
      return got;
    });
    const auto connected = broadcast.connect(1);
    ASSERT_TRUE(connected) << connected.error().message;
    EXPECT_TRUE(broadcast.connected());
    for (int version = 0; version < 2; ++version) {
      const auto sent = broadcast.send(tensors.spans());
      EXPECT_TRUE(sent) << sent.error().message;
    }
    const auto got = peer.get();
    ASSERT_EQ(got.size(), 2 * chunks.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t chunk = i % chunks.size();
      EXPECT_EQ(got[i], tensors.joined(chunk == 0 ? 0 : chunks[chunk - 1], chunks[chunk]));
    }
  }
}

TEST(TensorBroadcast, APeerThatNeverComesCostsTheDeadline_TX1_TX2) {
  const Side side;
  TensorBroadcast broadcast(config_of(side, true, 300ms));
  ASSERT_TRUE(broadcast.meet());
  const auto connected = broadcast.connect(1);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ErrorCode::kTimedOut) << connected.error().message;
  EXPECT_FALSE(broadcast.connected());
  EXPECT_FALSE(broadcast.send(Tensors({8}).spans()));
}

TEST(TensorBroadcast, APeerThatGoesAndOneThatTakesSomethingElseEndTheSend_TX1_TX2) {
  for (const bool goes : {true, false}) {
    const Side side;
    TensorBroadcast broadcast(config_of(side, true, goes ? 30s : 500ms));
    const auto id = broadcast.meet();
    ASSERT_TRUE(id);
    std::promise<void> over;
    auto peer = std::async(std::launch::async, [&, ended = over.get_future()] {
      Peer other;
      if (!other.join(*id)) return;
      std::vector<std::byte> wrong(7);
      if (goes) return;
      auto taken = other.communicator->submit(
          {.label = "wrong",
           .transfers = {{NcclKind::kBroadcast, wrong.data(), wrong.size(), 0}},
           .stream = &other,
           .timeout = 30s});
      ended.wait();
    });
    const auto connected = broadcast.connect(1);
    ASSERT_TRUE(connected) << connected.error().message;
    EXPECT_FALSE(broadcast.send(Tensors({8, 9}).spans()));
    EXPECT_FALSE(broadcast.connected());
    over.set_value();
  }
}

TEST(TensorBroadcast, ACutEndsWhatWaits_TX1) {
  const Side side;
  TensorBroadcast broadcast(config_of(side, true));
  const auto id = broadcast.meet();
  ASSERT_TRUE(id);
  std::promise<void> over;
  auto peer = std::async(std::launch::async, [&, ended = over.get_future()] {
    Peer other;
    if (!other.join(*id)) return;
    ended.wait();  // takes nothing
  });
  const auto connected = broadcast.connect(1);
  ASSERT_TRUE(connected) << connected.error().message;
  auto sent = std::async(std::launch::async, [&] { return broadcast.send(Tensors({8}).spans()); });
  const auto waits = [&] {
    for (const collective::NcclRecord& record : side.process.records->snapshot())
      if (record.kind == NcclKind::kBroadcast && record.state != collective::NcclState::kQueued)
        return true;
    return false;
  };
  while (!waits()) std::this_thread::yield();
  broadcast.cut("the server has answered 500");
  const auto outcome = sent.get();
  EXPECT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("has answered 500"), std::string::npos)
      << outcome.error().message;
  over.set_value();
}

TEST(TensorBroadcast, ACutThatComesBeforeTheStartEndsTheStart_TX1) {
  const Side side;
  TensorBroadcast broadcast(config_of(side, true));
  ASSERT_TRUE(broadcast.meet());
  EXPECT_FALSE(broadcast.connect(1, [] { return false; })) << "no peer comes for half a minute";
  EXPECT_FALSE(broadcast.connected());
}

}  // namespace
}  // namespace tandem::weights
