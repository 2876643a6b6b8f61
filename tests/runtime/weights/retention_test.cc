#include "runtime/weights/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::weights {
namespace {

PolicyVersion v(std::int64_t number) { return {number}; }

TEST(Retention, FillsEmptyPlacesThenReplacesTheOldest) {
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(4)}, {}, {v(5)}}, {}, v(6)), 1u);
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(4)}, {v(6)}, {v(5)}}, {}, v(7)), 0u);
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(-1)}, {v(0)}}, {}, v(1)), 0u);
}

TEST(Retention, NothingThatIsKeptOrInUse) {
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(4), true}, {v(6)}, {v(5)}}, {}, v(7)), 2u);
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(4)}, {v(6)}, {v(5)}}, v(5), v(7)), 0u);
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(4)}, {v(6)}, {v(5)}}, v(4), v(7)),
            std::nullopt);
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(4), true}, {v(5)}}, {}, v(6)),
            std::nullopt);
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{{}, true}, {v(5)}}, {}, v(6)), std::nullopt);
}

TEST(Retention, ASuccessorThatWentBackReplacesWhatItWillComeToAgain) {
  EXPECT_EQ(place_to_reuse(std::vector<VersionPlace>{{v(9)}, {v(10)}, {v(8)}}, v(4), v(6)), 1u);
}

TEST(Retention, WithKPlus2PlacesRetainingKNeverWaits) {
  for (std::int64_t k = 0; k <= 8; ++k) {
    std::vector<VersionPlace> places(static_cast<std::size_t>(k) + 2);
    for (std::int64_t s = 0; s < 40; ++s) {
      const auto place = place_to_reuse(places, v(s - 1 - k), v(s));
      ASSERT_TRUE(place) << "K " << k << " version " << s;
      places[*place] = {v(s)};
      for (std::int64_t kept = std::max<std::int64_t>(0, s - k); kept <= s; ++kept) {
        EXPECT_TRUE(std::ranges::any_of(
            places, [&](const VersionPlace& p) { return p.version == v(kept); }))
            << "K " << k << ": version " << kept << " was lost at " << s;
      }
    }
  }
}

TEST(Retention, WT2HoldsForRandomPlaces) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed);
  for (int round = 0; round < 20000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " round " << round);
    std::vector<VersionPlace> places(2 + rng.below(5));
    std::vector<std::int64_t> numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    shuffle(std::span(numbers), rng);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (rng.below(5) > 0) places[i].version = v(numbers[i]);
      places[i].in_use = rng.below(3) == 0;
    }
    const PolicyVersion publishing = v(9);
    const PolicyVersion retained = v(static_cast<std::int64_t>(rng.below(10)));
    const auto chosen = place_to_reuse(places, retained, publishing);
    std::optional<PolicyVersion> newest;
    for (const VersionPlace& place : places) newest = std::max(newest, place.version);
    const auto may = [&](const VersionPlace& place) {
      return !place.in_use &&
             (!place.version || (*place.version < retained && place.version != newest));
    };
    ASSERT_EQ(chosen.has_value(), std::ranges::any_of(places, may));
    if (chosen) {
      ASSERT_TRUE(may(places[*chosen]));
    }
  }
}

}  // namespace
}  // namespace tandem::weights
