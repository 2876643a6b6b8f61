#include "scheduler/fleet/fixed_lag.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/base/rng.h"

namespace tandem::scheduler {
namespace {

constexpr Budget kBudget{
    .max_staleness = 2, .lookahead = 1, .groups_per_step = 2, .steps_total = 5};

Slot slot(std::int64_t step, std::int32_t index, std::int32_t attempt = 0) {
  return {StepId{step}, index, attempt};
}

TEST(FixedLag, ASlotIsGeneratedByTheVersionKStepsBack) {
  EXPECT_EQ(slot_version(kBudget, StepId{0}), PolicyVersion{0});
  EXPECT_EQ(slot_version(kBudget, StepId{2}), PolicyVersion{0});
  EXPECT_EQ(slot_version(kBudget, StepId{5}), PolicyVersion{3});
}

TEST(FixedLag, EverySlotAndAttemptHasAPromptOfItsOwn) {
  std::set<std::int64_t> positions;
  for (std::int32_t attempt = 0; attempt < 3; ++attempt)
    for (std::int64_t step = 0; step < kBudget.steps_total; ++step)
      for (std::int32_t index = 0; index < 2; ++index)
        positions.insert(prompt_position(kBudget, slot(step, index, attempt)));
  EXPECT_EQ(positions.size(), 30u);
  EXPECT_EQ(*positions.rbegin(), 29);
}

TEST(FixedLag, IssuesInSlotOrderUpToTheLookahead) {
  FixedLag schedule(kBudget);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    const auto next = schedule.next(PolicyVersion{0});
    ASSERT_TRUE(next);
    EXPECT_EQ(*next, slot((static_cast<std::int64_t>(id) - 1) / 2, (id - 1) % 2));
    schedule.issued(*next, GroupId{id});
  }
  EXPECT_FALSE(schedule.next(PolicyVersion{0}));
  EXPECT_EQ(schedule.next(PolicyVersion{1}), slot(2, 0));
}

TEST(FixedLag, ADiscardedAttemptIsReplacedInItsSlot) {  // FL-2
  FixedLag schedule(kBudget);
  schedule.issued(slot(0, 0), GroupId{1});
  schedule.issued(slot(0, 1), GroupId{2});
  schedule.scored(GroupId{2});
  schedule.discarded(GroupId{1});
  EXPECT_EQ(schedule.next(PolicyVersion{0}), slot(0, 0, 1));
  schedule.issued(slot(0, 0, 1), GroupId{9});
  EXPECT_FALSE(schedule.batch(StepId{0}));
  schedule.scored(GroupId{9});
  EXPECT_EQ(schedule.batch(StepId{0}), (std::vector<GroupId>{{9}, {2}}));
  schedule.committed(StepId{0});
  EXPECT_EQ(schedule.first_held(), StepId{1});
  EXPECT_FALSE(schedule.slot_of(GroupId{9}));
}

TEST(FixedLag, DiscardedSlotsAreAdmittedAgainInTheirOrder) {  // FL-2
  constexpr std::int32_t kSlots = 20;
  FixedLag schedule({.max_staleness = 0, .groups_per_step = kSlots, .steps_total = 1});
  std::uint64_t id = 0;
  const auto admit = [&](const Slot& expected) {
    const auto next = schedule.next(PolicyVersion{0});
    ASSERT_TRUE(next == expected);
    schedule.issued(*next, GroupId{++id});
  };
  for (std::int32_t i = 0; i < kSlots; ++i) ASSERT_NO_FATAL_FAILURE(admit(slot(0, i)));
  EXPECT_FALSE(schedule.next(PolicyVersion{0}));
  // One of a slot before them that is discarded late goes before them.
  for (std::int32_t i = kSlots / 2; i < kSlots; ++i)
    schedule.discarded(GroupId{static_cast<std::uint64_t>(i) + 1});
  ASSERT_NO_FATAL_FAILURE(admit(slot(0, kSlots / 2, 1)));
  schedule.discarded(GroupId{1});
  ASSERT_NO_FATAL_FAILURE(admit(slot(0, 0, 1)));
  FixedLag restored({.max_staleness = 0, .groups_per_step = kSlots, .steps_total = 1},
                    schedule.snapshot());
  EXPECT_EQ(restored.next(PolicyVersion{0}), slot(0, kSlots / 2 + 1, 1));
  for (std::int32_t i = kSlots / 2 + 1; i < kSlots; ++i)
    ASSERT_NO_FATAL_FAILURE(admit(slot(0, i, 1)));
  EXPECT_FALSE(schedule.next(PolicyVersion{0}));
}

// Which (slot, attempt) are trained depends on the score of each, never on the order in which they
// end, nor on how often the schedule is made again from its snapshot.
TEST(FixedLagProperty, BatchesDoNotDependOnTheOrderOfEvents) {
  const auto worthless = [](const Slot& s) {
    return (s.step.value * 7 + s.index * 3 + s.attempt) % 4 == 0;
  };
  const auto trained = [&](std::uint64_t seed) {
    Rng rng(seed);
    FixedLag schedule(kBudget);
    std::vector<Slot> order;
    std::vector<GroupId> rolling;
    std::set<Slot> live;  // with attempt 0, whichever it is
    std::uint64_t last = 0;
    std::int64_t version = 0;
    while (version < kBudget.steps_total) {
      const auto next = schedule.next(PolicyVersion{version});
      if (next && rng.below(2) == 0) {
        EXPECT_TRUE(live.insert(slot(next->step.value, next->index)).second)
            << "FL-1, seed=" << seed;
        EXPECT_GE(next->step, schedule.first_held()) << "FL-3, seed=" << seed;
        EXPECT_LT(next->step.value, version + kBudget.lookahead + 2) << "FL-3, seed=" << seed;
        schedule.issued(*next, GroupId{++last});
        rolling.push_back(GroupId{last});
      } else if (!rolling.empty()) {
        std::swap(rolling.back(), rolling[rng.below(rolling.size())]);
        const GroupId group = rolling.back();
        rolling.pop_back();
        const Slot its = *schedule.slot_of(group);
        if (worthless(its)) live.erase(slot(its.step.value, its.index));
        worthless(its) ? schedule.discarded(group) : schedule.scored(group);
      }
      if (rng.below(4) == 0) schedule = FixedLag(kBudget, schedule.snapshot());
      const auto batch = schedule.batch(StepId{version});
      if (!batch) continue;
      for (const GroupId group : *batch) order.push_back(*schedule.slot_of(group));
      schedule.committed(StepId{version++});
      for (const GroupId group : *batch)
        EXPECT_FALSE(schedule.slot_of(group)) << "FL-3, seed=" << seed;
    }
    return order;
  };
  const std::vector<Slot> expected = trained(0);
  ASSERT_EQ(expected.size(), 10u);
  for (std::uint64_t seed = 1; seed <= 500; ++seed)
    ASSERT_EQ(trained(seed), expected) << "seed=" << seed;
}

}  // namespace
}  // namespace tandem::scheduler
