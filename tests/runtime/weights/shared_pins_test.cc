// Several slots of one segment, pinned at the same time by any number of copies (WT-2).
#include "runtime/weights/shared_pins.h"

#include <gtest/gtest.h>

#include "tests/runtime/weights/tcp_weights.h"

namespace tandem::weights {
namespace {

class SharedPinsOfWeights : public TcpWeights {
 protected:
  SharedPinsOfWeights() {
    config_.type = WeightsType::kShm;
    config_.serving.reset();
    publisher_ = std::move(make_publisher(config_)).value();
    for (std::int64_t version = 1; version <= 3; ++version)
      sums_.push_back(publish(version).value().checksum);
  }
  WeightOffer offer(std::int64_t version) const {
    return {.version = v(version), .checksum = sums_[static_cast<std::size_t>(version - 1)]};
  }
  bool can_publish(std::int64_t version) { return publish(version, 0, kSoon).has_value(); }

  std::vector<std::uint64_t> sums_;
};

TEST_F(SharedPinsOfWeights, WT2EverySlotIsPinnedOfItsOwnFromTheFirstCopyToTheLast) {
  SharedPins pins = SharedPins::open(config_).value();
  const auto one = pins.acquire(offer(1)), again = pins.acquire(offer(1));
  const auto two = pins.acquire(offer(2)), three = pins.acquire(offer(3));
  ASSERT_TRUE(one && again && two && three);
  EXPECT_EQ(one, again);
  EXPECT_NE(one, two);
  EXPECT_NE(two, three);
  EXPECT_EQ(pins.offers().size(), 3u);
  pins.release(*three);
  pins.release(*one);
  EXPECT_FALSE(can_publish(4)) << "1 has another copy, 2 has one, and 3 is the newest";
  pins.release(*two);
  EXPECT_TRUE(can_publish(4));
  EXPECT_FALSE(pins.acquire(offer(2))) << "it was replaced";
  EXPECT_TRUE(pins.offered(*one));
  pins.release(*one);
  EXPECT_TRUE(can_publish(5));
  EXPECT_TRUE(can_publish(6));
}

TEST_F(SharedPinsOfWeights, OtherContentOrAForgottenVersionIsNotPinned) {
  SharedPins pins = SharedPins::open(config_).value();
  WeightOffer other = offer(2);
  ++other.checksum;
  EXPECT_FALSE(pins.acquire(other));
  const auto three = pins.acquire(offer(3));
  ASSERT_TRUE(three);
  publisher_->forget_after(v(2));
  EXPECT_FALSE(pins.offered(*three));
  EXPECT_FALSE(pins.acquire(offer(3)));
  EXPECT_EQ(pins.offers().size(), 2u);
  EXPECT_EQ(pins.bytes(*three).size(), kArenaBytes) << "still there for who has begun";
  pins.release(*three);
}

// A lock does not shut out its own holder: two that were open at once must not share an entry.
TEST_F(SharedPinsOfWeights, WT2TwoServersOfOneSegmentDoNotShareEntries) {
  SharedPins first = SharedPins::open(config_).value();
  SharedPins second = SharedPins::open(config_).value();
  const auto mine = first.acquire(offer(1)), yours = second.acquire(offer(2));
  ASSERT_TRUE(mine && yours);
  second.release(*yours);
  ASSERT_TRUE(can_publish(4)) << "in the place of version 2";
  EXPECT_EQ(first.acquire(offer(1)), mine);
}

}  // namespace
}  // namespace tandem::weights
