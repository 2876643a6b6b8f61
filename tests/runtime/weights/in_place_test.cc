// Versions that are read where the publisher left them: verified once, then unchanged until they
// are let go.
//
// Tests runtime/weights/weight_ends.h.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/digest.h"
#include "tests/runtime/weights/families.h"

namespace tandem::weights {
namespace {

namespace fs = std::filesystem;

class InPlace : public testing::TestWithParam<std::string> {
 protected:
  InPlace() {
    std::string pattern = testing::TempDir() + "in-place.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~InPlace() override {
    EXPECT_TRUE(remove_weights(config()));
    fs::remove_all(directory_);
  }

  WeightsConfig config(int slots = 2) const { return config_of(GetParam(), directory_, slots); }
  bool in_slots() const { return GetParam() == "shm"; }

  // Verifies a version in odd parts.
  static Result<void> hold(WeightSubscriber& reader, std::int64_t version) {
    if (auto begun = reader.begin(v(version), {}); !begun) return begun;
    for (;;) {
      EXPECT_TRUE(reader.held().empty()) << "before it is verified";
      const auto progress = reader.progress(10'007);
      if (!progress) return progress.error();
      if (progress->complete) return {};
    }
  }
  static bool holds(WeightSubscriber& reader, const std::vector<std::byte>& arena) {
    return std::ranges::equal(reader.held(), arena);
  }

  // Changes a byte of a published version.
  void damage(std::int64_t version) const {
    fs::path file = config().directory / ("v" + std::to_string(version)) / "arena.bin";
    if (in_slots()) file = "/dev/shm/tandem-weights." + config().name;
    std::string bytes = read_file(file).value();
    const auto arena = arena_of(version);
    const auto at = bytes.find({reinterpret_cast<const char*>(arena.data()), arena.size()});
    ASSERT_NE(at, std::string::npos);
    const OwnedFd there(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(there.get(), "x", 1, static_cast<off_t>(at) + 1000), 1);
  }

  fs::path directory_;
};

INSTANTIATE_TEST_SUITE_P(Family, InPlace, testing::Values("shm", "disk"));

TEST_P(InPlace, WT1AVersionIsVerifiedAndHeldWithoutACopy) {
  auto learner = make_publisher(config()).value();
  ASSERT_TRUE(publish(*learner, 1) && publish(*learner, 2));
  const auto reader = make_subscriber(config());
  ASSERT_TRUE(reader->newest());
  ASSERT_TRUE(reader->in_place());
  for (const std::int64_t version : {2, 1}) {
    ASSERT_TRUE(hold(*reader, version));
    EXPECT_TRUE(holds(*reader, arena_of(version)));
    EXPECT_EQ(reader->installed()->version, v(version));
    EXPECT_EQ(reader->installed()->checksum, checksum64(arena_of(version)));
  }
  reader->cancel();
  EXPECT_TRUE(reader->held().empty());
  EXPECT_EQ(fetch(*reader, v(2)).value(), arena_of(2));
  EXPECT_TRUE(reader->held().empty()) << "that was a copy";
  EXPECT_EQ(hold(*reader, 3).error().code, ErrorCode::kNotFound);
}

// Only the rooms of shared memory are few: a file that is removed stays as long as it is mapped.
TEST_P(InPlace, WT1ADamagedVersionIsNotHeldAndIsWrittenAnewIfPublishedAgain) {
  auto learner = make_publisher(config(3)).value();
  ASSERT_TRUE(publish(*learner, 1) && publish(*learner, 2));
  damage(2);
  const auto reader = make_subscriber(config(3));
  EXPECT_EQ(hold(*reader, 2).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(reader->installed());
  EXPECT_EQ(learner->publish(v(2), arena_of(2), kLong)->bytes, kArenaBytes);
  EXPECT_EQ(learner->publish(v(2), arena_of(2), kLong)->bytes, 0u);
  for (const std::int64_t version : {1, 2}) {
    ASSERT_TRUE(hold(*reader, version)) << version;
    EXPECT_TRUE(holds(*reader, arena_of(version)));
  }
}

TEST_P(InPlace, WT2WhatIsHeldIsNotReplaced) {
  auto learner = make_publisher(config()).value();
  ASSERT_TRUE(publish(*learner, 1));
  const auto reader = make_subscriber(config());
  ASSERT_TRUE(hold(*reader, 1));
  const std::byte* const there = reader->held().data();
  ASSERT_TRUE(publish(*learner, 2));
  EXPECT_EQ(publish(*learner, 3, 0, kSoon).has_value(), !in_slots());
  const auto arena = arena_of(1);
  EXPECT_TRUE(std::equal(arena.begin(), arena.end(), there));
  reader->cancel();
  EXPECT_TRUE(publish(*learner, 3));
  ASSERT_TRUE(hold(*reader, 3));
  EXPECT_TRUE(holds(*reader, arena_of(3)));
}

TEST_P(InPlace, WT1WhatIsWithdrawnIsNotHeldButItsBytesStay) {
  auto learner = make_publisher(config()).value();
  ASSERT_TRUE(publish(*learner, 1) && publish(*learner, 2));
  const auto reader = make_subscriber(config());
  ASSERT_TRUE(hold(*reader, 2));
  const std::span<const std::byte> held = reader->held();
  learner->forget_after(v(1));
  EXPECT_TRUE(reader->held().empty());
  EXPECT_TRUE(std::ranges::equal(held, arena_of(2)));
  reader->cancel();
  ASSERT_TRUE(reader->begin(v(1), {}));
  learner->forget_after(v(0));
  EXPECT_FALSE(reader->progress(kArenaBytes)) << "verified a version that was withdrawn";
}

TEST_P(InPlace, WT3WhatIsHeldOutlivesItsPublisherAndTheFamily) {
  auto learner = make_publisher(config()).value();
  ASSERT_TRUE(publish(*learner, 1));
  const auto reader = make_subscriber(config());
  ASSERT_TRUE(hold(*reader, 1));
  const std::span<const std::byte> held = reader->held();
  learner.reset();
  ASSERT_TRUE(remove_weights(config()));
  EXPECT_TRUE(std::ranges::equal(held, arena_of(1)));
}

TEST_P(InPlace, WT1ADamagedVersionIsNotHeld) {
  auto learner = make_publisher(config()).value();
  ASSERT_TRUE(publish(*learner, 1));
  const fs::path file = in_slots() ? fs::path("/dev/shm/tandem-weights." + config().name)
                                   : config().directory / "v1" / "arena.bin";
  const OwnedFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  const auto arenas = static_cast<off_t>(in_slots() ? config().slots : 1);
  for (off_t slot = 1; slot <= arenas; ++slot)
    ASSERT_EQ(::pwrite(fd.get(), "x", 1,
                       static_cast<off_t>(fs::file_size(file)) -
                           slot * static_cast<off_t>(kArenaBytes) + 1000),
              1);
  const auto reader = make_subscriber(config());
  const auto damaged = hold(*reader, 1);
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("checksum"), std::string::npos);
  EXPECT_TRUE(reader->held().empty());
  EXPECT_FALSE(reader->installed());
}

TEST_P(InPlace, AFileThatIsTooShortIsAnErrorAndNoSignal) {
  if (in_slots()) GTEST_SKIP() << "a segment has its size";
  auto learner = make_publisher(config()).value();
  ASSERT_TRUE(publish(*learner, 1));
  fs::resize_file(config().directory / "v1" / "arena.bin", 5000);
  const auto reader = make_subscriber(config());
  const auto begun = reader->begin(v(1), {});
  ASSERT_FALSE(begun);
  EXPECT_NE(begun.error().message.find("end too early"), std::string::npos);
}

TEST(CopiedFamilies, SayThatTheyCannotBeReadInPlace) {
  const fs::path directory = testing::TempDir();
  EXPECT_FALSE(make_subscriber(config_of("tcp", directory, 2))->in_place());
}

}  // namespace
}  // namespace tandem::weights
