#include "runtime/device/graph.h"

#include <cstring>
#include <utility>
#include <vector>

#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "runtime/device/staged.h"
#include "tests/runtime/device/cuda_case.h"

namespace tandem::device {
namespace {

constexpr std::size_t kBytes = 1000;

Buffer on_gpu() { return *Buffer::allocate(kBytes, "a test", MemoryKind::kDevice); }
Staged staged() { return *Staged::allocate(kBytes, "a test", DeviceKind::kCuda); }

class GraphTest : public CudaCase {
 protected:
  void fill(const Staged& block, int value) { std::memset(block.host(), value, kBytes); }
  bool holds(const Staged& block, int value) {
    const std::vector<unsigned char> expected(kBytes, static_cast<unsigned char>(value));
    return std::memcmp(block.host(), expected.data(), kBytes) == 0;
  }
};

// GR-1: nothing runs at recording; each launch copies the bytes that are there by then.
TEST_F(GraphTest, Gr1EachLaunchReadsWhatMemoryHolds) {
  Staged in = staged(), out = staged();
  fill(in, 1);
  fill(out, 9);
  const Graph graph = Graph::capture(gpu(), [&] {
    in.upload(gpu(), kBytes);
    copy(gpu(), out.on_device(out.host()), in.on_device(in.host()), kBytes);
    out.download(gpu(), kBytes);
  });
  synchronize(gpu());
  EXPECT_TRUE(holds(out, 9));
  for (const int value : {1, 2, 3}) {
    fill(in, value);
    graph.launch(gpu());
    synchronize(gpu());
    EXPECT_TRUE(holds(out, value)) << value;
  }
}

TEST_F(GraphTest, Gr1LaunchesKeepTheOrderOfTheQueue) {
  Staged in = staged(), out = staged();
  const Buffer middle = on_gpu();
  fill(in, 5);
  const Graph first = Graph::capture(gpu(), [&] {
    in.upload(gpu(), kBytes);
    copy(gpu(), middle.data(), in.on_device(in.host()), kBytes);
  });
  const Graph second = Graph::capture(gpu(), [&] {
    copy(gpu(), out.on_device(out.host()), middle.data(), kBytes);
    out.download(gpu(), kBytes);
  });
  first.launch(gpu());
  zero(gpu(), middle.data(), kBytes);
  second.launch(gpu());
  synchronize(gpu());
  EXPECT_TRUE(holds(out, 0));
  zero(gpu(), middle.data(), kBytes);
  first.launch(gpu());
  second.launch(gpu());
  synchronize(gpu());
  EXPECT_TRUE(holds(out, 5));
}

// GR-2: a launch uses the arguments of the recorded calls, not the later values of the caller's
// variables.
TEST_F(GraphTest, Gr2PointersAndNumbersStayAsRecorded) {
  Staged out = staged(), other = staged();
  std::size_t bytes = 10;
  std::byte* to = out.on_device(out.host());
  const Graph graph = Graph::capture(gpu(), [&] { zero(gpu(), to, bytes); });
  bytes = kBytes;
  to = other.on_device(other.host());
  for (Staged* block : {&out, &other}) {
    fill(*block, 3);
    block->upload(gpu(), kBytes);
  }
  graph.launch(gpu());
  out.download(gpu(), kBytes);
  other.download(gpu(), kBytes);
  synchronize(gpu());
  EXPECT_TRUE(holds(other, 3));
  EXPECT_EQ(out.host()[9], std::byte{0});
  std::memset(out.host(), 3, 10);
  EXPECT_TRUE(holds(out, 3));
}

TEST_F(GraphTest, MovesAndIsGoneWithItsOwner) {
  Staged out = staged();
  const auto writes = [&](Staged& block) {
    return Graph::capture(gpu(), [&] { block.download(gpu(), kBytes); });
  };
  Graph graph = writes(out);
  Graph moved = std::move(graph);
  fill(out, 4);
  moved.launch(gpu());
  synchronize(gpu());
  EXPECT_TRUE(holds(out, 0));
  moved = writes(out);
  fill(out, 4);
  moved.launch(gpu());
  synchronize(gpu());
  EXPECT_TRUE(holds(out, 0));
}

using GraphDeathTest = GraphTest;

// GR-3
TEST_F(GraphDeathTest, Gr3RecordingWhatCannotBeRecordedEndsTheProcess) {
  if (!emulated()) GTEST_SKIP() << "a child of fork has no GPU";
  const Buffer there = on_gpu();
  std::vector<unsigned char> pageable(kBytes);
  const auto recorded = [&](const std::function<void()>& work) { Graph::capture(gpu(), work); };
  const char* refused = "CUDA error: cudaErrorStreamCaptureUnsupported .*cuda_functions.cc";
  EXPECT_DEATH(recorded([&] { synchronize(gpu()); }), refused);
  EXPECT_DEATH(recorded([&] { static_cast<void>(on_gpu()); }), refused);
  EXPECT_DEATH(recorded([&] { copy(gpu(), there.data(), pageable.data(), kBytes); }), refused);
}

// GR-4
TEST_F(GraphDeathTest, Gr4IsNotDestroyedWhileItRuns) {
  if (!emulated()) GTEST_SKIP() << "a GPU does not tell";
  const Buffer there = on_gpu();
  EXPECT_DEATH(
      {
        const Graph graph = Graph::capture(gpu(), [&] { zero(gpu(), there.data(), kBytes); });
        graph.launch(gpu());
      },
      "destroyed before its work had run");
}

TEST(GraphOfACpu, IsABug) {
  EXPECT_DEATH(Graph::capture(Stream{}, [] {}), "DeviceKind::kCuda");
  EXPECT_DEATH(Graph().launch(Stream{}), "native_ != nullptr");
}

}  // namespace
}  // namespace tandem::device
