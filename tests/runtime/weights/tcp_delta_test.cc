// Versions that travel as what has changed: over real TCP, through a relay that counts the bytes
// (WT-1, WD-1).
//
// Tests runtime/weights/tcp_copy.h, runtime/weights/delta_maker.h.
#include <gtest/gtest.h>

#include "runtime/base/digest.h"
#include "runtime/weights/tcp_copy.h"
#include "tests/runtime/weights/relay.h"
#include "tests/runtime/weights/tcp_weights.h"

namespace tandem::weights {
namespace {

using Bytes = std::vector<std::byte>;

// Each version differs from the one before in 1 of 1,000 bytes, and from those of another lineage
// in as many again.
Bytes near(std::int64_t version, std::uint64_t lineage = 0) {
  Bytes arena = arena_of(0);
  for (std::uint64_t step = 1; step <= static_cast<std::uint64_t>(version); ++step) {
    Rng rng(derive_seed(step, {lineage}));
    for (std::uint64_t i = 0; i < kArenaBytes / 1000; ++i)
      arena[rng.below(kArenaBytes)] ^= static_cast<std::byte>(1 + rng.below(255));
  }
  return arena;
}

class TcpDeltas : public TcpWeights {
 protected:
  TcpDeltas() {
    config_.delta = DeltaUse::kAuto;
    config_.slots = 4;
    constexpr std::uint64_t kFirst = 400'000;
    config_.layout.tensors = {
        {.name = "embedding", .bytes = kFirst},
        {.name = "head", .offset = kFirst, .bytes = kArenaBytes - kFirst, .element_bytes = 1}};
  }
  void publish_near(std::int64_t version, std::uint64_t lineage = 0) {
    const auto published = publisher_->publish(v(version), near(version, lineage), kPatience);
    ASSERT_TRUE(published) << render(published.error());
  }
  // A subscriber that has version 1 in `buffer_`, before there is a newer one.
  void begin_with_version_1() {
    relay_.emplace(endpoint_of(start()));
    publish_near(1);
    reader_ = subscriber(through());
    EXPECT_EQ(fetched(1), kArenaBytes);
  }
  wire::WeightSource through() const {
    wire::WeightSource source = *publisher_->source();
    source.endpoint = to_string(relay_->at());
    return source;
  }
  // Fetches a version into `buffer_`; returns how many bytes of it travelled.
  std::uint64_t fetched(std::int64_t version, std::uint64_t lineage = 0) {
    EXPECT_TRUE(comes(*reader_, v(version)));
    EXPECT_TRUE(reader_->begin(v(version), buffer_));
    for (;;) {
      const auto progress = reader_->progress(1);
      EXPECT_TRUE(progress) << render(progress.error());
      if (!progress) return 0;
      EXPECT_LE(progress->bytes_done, progress->bytes_total);
      if (!progress->complete) continue;
      EXPECT_TRUE(buffer_ == near(version, lineage)) << "version " << version;
      return progress->bytes_total;
    }
  }

  std::optional<Relay> relay_;
  std::unique_ptr<WeightSubscriber> reader_;
  Bytes buffer_ = Bytes(kArenaBytes);
};

TEST_F(TcpDeltas, WhoHasTheVersionBeforeFetchesWhatHasChanged) {
  begin_with_version_1();
  const std::uint64_t before = relay_->bytes();
  publish_near(2);
  EXPECT_LT(fetched(2), kArenaBytes / 100);
  EXPECT_EQ(reader_->installed()->checksum, checksum64(near(2)));
  EXPECT_LT(relay_->bytes() - before, kArenaBytes / 20) << "heads and probes included";
}

TEST_F(TcpDeltas, WhoMissedVersionsFetchesTheChangesOfAll) {
  begin_with_version_1();
  for (const std::int64_t version : {2, 3, 4}) {
    publish_near(version);
    ASSERT_TRUE(comes(*reader_, v(version)));
  }
  const std::uint64_t bytes = fetched(4);
  EXPECT_GT(bytes, kArenaBytes / 200);
  EXPECT_LT(bytes, kArenaBytes / 30);
  publish_near(9);
  EXPECT_LT(fetched(9), kArenaBytes / 20) << "the learner published only that one";
}

TEST_F(TcpDeltas, WhoHasNoneOrWroteIntoItsBufferGetsTheWholeVersion) {
  begin_with_version_1();
  publish_near(2);
  const auto newcomer = subscriber(through());
  ASSERT_TRUE(comes(*newcomer, v(2)));
  EXPECT_EQ(fetch(*newcomer, v(2)).value(), near(2));

  buffer_[kArenaBytes / 2] ^= std::byte{1};
  EXPECT_EQ(fetched(2), kArenaBytes) << "the checksum tells";
  publish_near(3);
  Bytes another(kArenaBytes);
  ASSERT_TRUE(comes(*reader_, v(3)));
  ASSERT_TRUE(reader_->begin(v(3), another));
  EXPECT_EQ(finish(*reader_, another).value(), near(3));
}

TEST_F(TcpDeltas, ACopyThatWasCancelledLeavesABaseOrNone) {
  begin_with_version_1();
  publish_near(2);
  ASSERT_TRUE(comes(*reader_, v(2)));
  ASSERT_TRUE(reader_->begin(v(2), buffer_));
  reader_->cancel();
  EXPECT_LT(fetched(2), kArenaBytes / 100);
  // Version 0 has no delta, and some of its bytes may have arrived.
  ASSERT_TRUE(publisher_->publish(v(5), arena_of(7), kPatience));
  ASSERT_TRUE(comes(*reader_, v(5)));
  ASSERT_TRUE(reader_->begin(v(5), buffer_));
  ASSERT_TRUE(comes_true([&] { return reader_->progress(1)->bytes_done > 0; }));
  reader_->cancel();
  EXPECT_EQ(fetched(2), kArenaBytes);
}

TEST_F(TcpDeltas, VersionsThatChangeMuchTravelWhole) {
  begin_with_version_1();
  ASSERT_TRUE(publish(2));
  ASSERT_TRUE(comes(*reader_, v(2)));
  ASSERT_TRUE(reader_->begin(v(2), buffer_));
  EXPECT_EQ(reader_->progress(1)->bytes_total, kArenaBytes);
  EXPECT_EQ(finish(*reader_, buffer_).value(), arena_of(2));
}

TEST_F(TcpDeltas, AnotherLineageHasItsOwnChanges) {
  begin_with_version_1();
  publish_near(2);
  publish_near(3);
  EXPECT_LT(fetched(3), kArenaBytes / 50);
  publisher_->forget_after(v(1));
  publish_near(2, 5);
  ASSERT_TRUE(comes_true([&] { return reader_->checksum_of(v(2)) == checksum64(near(2, 5)); }));
  EXPECT_EQ(fetched(2, 5), kArenaBytes) << "version 3 of the old lineage is no base of it";
}

TEST_F(TcpDeltas, ASuccessorGoesOnWithChanges) {
  begin_with_version_1();
  relay_.emplace(endpoint_of(start()));
  reader_->look_at(through());
  ASSERT_TRUE(comes_true([&] { return reader_->publisher_life() == 2; }));
  publish_near(2);
  EXPECT_LT(fetched(2), kArenaBytes / 100);
}

TEST_F(TcpDeltas, ALinkThatIsCutInTheMiddleOfChangesCostsWhatWasOnItsWay) {
  config_.delta = DeltaUse::kAlways;
  config_.bucket_bytes = 16 << 10;
  begin_with_version_1();
  ASSERT_TRUE(publish(2));
  ASSERT_TRUE(comes(*reader_, v(2)));
  const std::uint64_t connections = relay_->connections();
  relay_->cut_after({kArenaBytes / 4, kArenaBytes / 4});
  ASSERT_TRUE(reader_->begin(v(2), buffer_));
  EXPECT_GT(reader_->progress(1)->bytes_total, kArenaBytes) << "all of it, as a delta";
  EXPECT_EQ(finish(*reader_, buffer_).value(), arena_of(2));
  EXPECT_GE(relay_->connections(), connections + 2);
}

TEST_F(TcpDeltas, NeverMeansWhole) {
  config_.delta = DeltaUse::kNever;
  begin_with_version_1();
  publish_near(2);
  EXPECT_EQ(fetched(2), kArenaBytes);
}

}  // namespace
}  // namespace tandem::weights
