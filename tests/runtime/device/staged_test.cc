#include "runtime/device/staged.h"

#include <algorithm>
#include <vector>

#include "tests/runtime/device/cuda_case.h"

namespace tandem::device {
namespace {

constexpr std::size_t kBytes = 1000;

class StagedTest : public CudaCase {};

void fill(std::byte* block, int value) { std::fill_n(block, kBytes, std::byte(value)); }

bool holds(const std::byte* block, int value) {
  return std::all_of(block, block + kBytes, [&](std::byte b) { return b == std::byte(value); });
}

// Each round fills a side while the rounds before may be under way, and nothing waits but turn():
// neither is an upload overtaken by the next filling, nor a result read before it is there.
TEST_F(StagedTest, SidesAreFilledWhileOthersAreOnTheirWay) {
  for (const std::size_t sides : {2u, 3u}) {
    Staged in = *Staged::allocate(kBytes, "a test", DeviceKind::kCuda, sides);
    Staged out = *Staged::allocate(kBytes, "a test", DeviceKind::kCuda, sides);
    for (int round = 0; round < 40; ++round) {
      in.turn();
      out.turn();
      const int before = round - static_cast<int>(sides);  // that used these sides
      if (before >= 0) {
        EXPECT_TRUE(holds(out.host(), before)) << "round " << round;
      }
      fill(in.host(), round);
      fill(out.host(), 255);
      in.upload(gpu(), kBytes);
      copy(gpu(), out.on_device(out.host()), in.on_device(in.host()), kBytes);
      out.download(gpu(), kBytes);
    }
    for (std::size_t i = 0; i < sides; ++i) out.wait(i);
    EXPECT_TRUE(holds(out.host(), 39));
    synchronize(gpu());
  }
}

TEST_F(StagedTest, AnEventIsPassedWhenWhatIsBeforeItIsDone) {
  Staged out = *Staged::allocate(kBytes, "a test", DeviceKind::kCuda);
  Event never, event;
  never.wait();
  for (int round = 0; round < 10; ++round) {
    fill(out.host(), 255);
    zero(gpu(), out.on_device(out.host()), kBytes);
    out.download(gpu(), kBytes);
    event.record(gpu());
    event.wait();
    EXPECT_TRUE(holds(out.host(), 0));
    event.wait();  // as often as one likes
  }
}

}  // namespace
}  // namespace tandem::device
