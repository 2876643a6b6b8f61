#include "runtime/node/disk_watch.h"

#include <gtest/gtest.h>

#include <future>
#include <utility>

namespace tandem::node {
namespace {

using namespace std::chrono_literals;

TEST(DiskWatch, KeepsTheLastGoodFiguresThroughLooksThatFailAndHang) {
  struct Disk {
    int looks = 0;
    std::promise<void> fourth;  // has begun
    std::promise<void> returns;
    std::shared_future<void> back = returns.get_future().share();
  };
  const auto disk = std::make_shared<Disk>();
  auto fourth = disk->fourth.get_future();
  {
    const DiskWatch watch(
        [disk]() -> Result<DiskSpace> {
          switch (++disk->looks) {
            case 1:
              return DiskSpace{.size_bytes = 100, .free_bytes = 50};
            case 2:
              return DiskSpace{.size_bytes = 100, .free_bytes = 40};
            case 4:
              disk->fourth.set_value();
              disk->back.wait();
              [[fallthrough]];
            default:
              return Error{ErrorCode::kFailed, "stale file handle", "/data", ""};
          }
        },
        1ms);
    ASSERT_TRUE(watch.newest()) << "the first look is made at once";
    fourth.wait();
    EXPECT_EQ(watch.newest()->free_bytes, 40u) << "as of the second look";
  }  // does not wait for the look that hangs
  disk->returns.set_value();
}

TEST(DiskWatch, WithoutAGoodLookItKnowsNothing) {
  const DiskWatch watch([]() -> Result<DiskSpace> { return Error{}; });
  EXPECT_FALSE(watch.newest());
}

}  // namespace
}  // namespace tandem::node
