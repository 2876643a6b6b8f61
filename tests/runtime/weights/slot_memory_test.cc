// Versions in GPU memory that cannot be had: kCudaIpc on the emulated GPU, in one process.
#include "runtime/weights/slot_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/weight_family.h"

namespace tandem::weights {
namespace {

constexpr int kSlots = 4;
constexpr std::size_t kPageBytes = 4096;  // the size of a slot that holds a block's name
constexpr std::uint64_t kArenaBytes = 64 << 10;
constexpr Duration kLong = std::chrono::seconds(30);
constexpr PolicyVersion kVersion{1};

const int kChosen = ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1);

class GpuSlots : public testing::Test {
 protected:
  ~GpuSlots() override { EXPECT_TRUE(remove_weights(config_)); }

  ErrorCode refused(WeightSubscriber& subscriber) {
    const Result<void> begun = subscriber.begin(kVersion, buffer_);
    EXPECT_FALSE(begun);
    return begun ? ErrorCode::kFailed : begun.error().code;
  }

  WeightsConfig config_{
      .type = WeightsType::kCudaIpc,
      .name = weights_name("slots", testing::TempDir() + std::to_string(::getpid())),
      .slots = kSlots,
      .layout = {.arena_bytes = kArenaBytes, .hash = 17, .manifest_json = "{}\n"}};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kArenaBytes);
};

// The same as where the learner is on another GPU: its blocks are there and cannot be opened from
// here. A learner that is about to die looks the same for a short time.
TEST_F(GpuSlots, ThatCannotBeOpenedForLongAreAMistakeOfTheJob) {
  auto learner = make_publisher(config_);
  ASSERT_TRUE(learner) << render(learner.error());
  ASSERT_TRUE((*learner)->publish(kVersion, buffer_, kLong));
  const OwnedFd segment(::open(ShmSegment::path_of(config_.name).c_str(), O_RDWR | O_CLOEXEC));
  std::string right(kSlots * kPageBytes, 0);
  const off_t slots = ::lseek(segment.get(), 0, SEEK_END) - std::ssize(right);
  ASSERT_EQ(::pread(segment.get(), right.data(), right.size(), slots), std::ssize(right));
  std::string wrong = right;
  for (std::size_t slot = 0; slot < kSlots; ++slot) wrong.replace(slot * kPageBytes, 8, "nobody's");
  const auto name_blocks = [&](const std::string& names) {
    EXPECT_EQ(::pwrite(segment.get(), names.data(), names.size(), slots), std::ssize(names));
  };
  WeightsConfig patient = config_, hasty = config_;
  patient.dying_max = kLong;
  hasty.dying_max = Duration{1};
  const auto waits = make_subscriber(patient), gives_up = make_subscriber(hasty);

  name_blocks(wrong);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refused(*waits), ErrorCode::kNotFound) << "it may be dying";
  EXPECT_EQ(refused(*gives_up), ErrorCode::kNotFound) << "the first counts from now";
  name_blocks(right);
  for (WeightSubscriber* each : {waits.get(), gives_up.get()}) {
    EXPECT_TRUE(each->begin(kVersion, buffer_));
    each->cancel();
  }

  name_blocks(wrong);
  EXPECT_EQ(refused(*gives_up), ErrorCode::kNotFound) << "a slot that opened later does not count";
  const auto at_last = gives_up->begin(kVersion, buffer_);
  ASSERT_FALSE(at_last);
  EXPECT_EQ(at_last.error().code, ErrorCode::kInvalid) << at_last.error().message;
  EXPECT_EQ(at_last.error().where, "weight_broadcast.type");
}

TEST_F(GpuSlots, ForWhichThereIsNoRoomAreToldByThePublisher) {
  config_.layout.arena_bytes = std::uint64_t{8} << 30;
  const auto made = make_publisher(config_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace tandem::weights
