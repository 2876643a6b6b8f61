#include "runtime/weights/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::weights {
namespace {

PolicyVersion v(std::int64_t number) { return {number}; }

TEST(Retention, FillsEmptySlotsThenReplacesTheOldest) {
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(4)}, {}, {v(5)}}, {}, v(6)), 1u);
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(4)}, {v(6)}, {v(5)}}, {}, v(7)), 0u);
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(-1)}, {v(0)}}, {}, v(1)), 0u);
}

TEST(Retention, NothingThatIsKeptOrInUse) {
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(4), true}, {v(6)}, {v(5)}}, {}, v(7)), 2u);
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(4)}, {v(6)}, {v(5)}}, v(5), v(7)), 0u);
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(4)}, {v(6)}, {v(5)}}, v(4), v(7)),
            std::nullopt);
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(4), true}, {v(5)}}, {}, v(6)), std::nullopt);
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{{}, true}, {v(5)}}, {}, v(6)), std::nullopt);
}

TEST(Retention, ASuccessorThatWentBackReplacesWhatItWillComeToAgain) {
  EXPECT_EQ(slot_to_reuse(std::vector<VersionSlot>{{v(9)}, {v(10)}, {v(8)}}, v(4), v(6)), 1u);
}

TEST(Retention, WithKPlus2SlotsRetainingKNeverWaits) {
  for (std::int64_t k = 0; k <= 8; ++k) {
    std::vector<VersionSlot> slots(static_cast<std::size_t>(k) + 2);
    for (std::int64_t s = 0; s < 40; ++s) {
      const auto slot = slot_to_reuse(slots, v(s - 1 - k), v(s));
      ASSERT_TRUE(slot) << "K " << k << " version " << s;
      slots[*slot] = {v(s)};
      for (std::int64_t kept = std::max<std::int64_t>(0, s - k); kept <= s; ++kept) {
        EXPECT_TRUE(
            std::ranges::any_of(slots, [&](const VersionSlot& p) { return p.version == v(kept); }))
            << "K " << k << ": version " << kept << " was lost at " << s;
      }
    }
  }
}

TEST(Retention, WT2HoldsForRandomSlots) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed);
  for (int round = 0; round < 20000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " round " << round);
    std::vector<VersionSlot> slots(2 + rng.below(5));
    std::vector<std::int64_t> numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    shuffle(std::span(numbers), rng);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (rng.below(5) > 0) slots[i].version = v(numbers[i]);
      slots[i].in_use = rng.below(3) == 0;
    }
    const PolicyVersion publishing = v(9);
    const PolicyVersion retained = v(static_cast<std::int64_t>(rng.below(10)));
    const auto chosen = slot_to_reuse(slots, retained, publishing);
    std::optional<PolicyVersion> newest;
    for (const VersionSlot& slot : slots) newest = std::max(newest, slot.version);
    const auto may = [&](const VersionSlot& slot) {
      return !slot.in_use &&
             (!slot.version || (*slot.version < retained && slot.version != newest));
    };
    ASSERT_EQ(chosen.has_value(), std::ranges::any_of(slots, may));
    if (chosen) {
      ASSERT_TRUE(may(slots[*chosen]));
    }
  }
}

}  // namespace
}  // namespace tandem::weights
