#include "scheduler/fleet/work_limits.h"

#include <gtest/gtest.h>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

constexpr WorkLimits kSmall{.sequences_max = 8,
                            .completions_per_prompt = 4,
                            .prompts_per_step = 16,
                            .lookahead = 1,
                            .max_staleness = 2};

TEST(WorkLimits, TheSmallerOneLimitsTheSequences) {
  WorkLimits limits = kSmall;
  EXPECT_EQ(sequence_limit(limits).limit, WorkLimit::kSequences);
  limits.held_max = 12;  // the engine decodes 8 of them
  EXPECT_EQ(sequence_limit(limits).limit, WorkLimit::kSequences);
  limits.held_max = 4;
  EXPECT_EQ(sequence_limit(limits), (LimitRaise{WorkLimit::kHeld, 4, 4}));
}

TEST(WorkLimits, IsRaisedInWholeGroupsAsFarAsThereIsWork) {
  EXPECT_EQ(more_sequences(kSmall, {.times = 2}), (LimitRaise{WorkLimit::kSequences, 8, 20}));
  EXPECT_EQ(more_sequences(kSmall, {.times = 50})->raised, 128) << "two steps of 16 groups of 4";
  EXPECT_EQ(more_sequences(kSmall, {.times = 50, .rollouts = 8})->raised, 16);
  EXPECT_FALSE(more_sequences(kSmall, {.times = 50, .rollouts = 16})) << "each has its 8";
  EXPECT_FALSE(more_sequences({}, {.times = 2})) << "the limits are not known";
}

TEST(WorkLimits, EachWaitHasItsOwn) {
  const auto behind = [](TrainerWait wait) { return limit_behind(wait, kSmall, {.times = 2}); };
  EXPECT_EQ(behind(TrainerWait::kSamples)->limit, WorkLimit::kSequences);
  EXPECT_EQ(behind(TrainerWait::kLast), (LimitRaise{WorkLimit::kLookahead, 1, 2}));
  for (const TrainerWait other :
       {TrainerWait::kNone, TrainerWait::kScores, TrainerWait::kWeights, TrainerWait::kCheckpoint})
    EXPECT_FALSE(behind(other));
  WorkLimits far = kSmall;
  far.lookahead = 2;
  EXPECT_EQ(limit_behind(TrainerWait::kLast, far, {}), (LimitRaise{WorkLimit::kStaleness, 2, 3}));
  EXPECT_FALSE(limit_behind(TrainerWait::kLast, {}, {})) << "the limits are not known";
}

TEST(WorkLimits, ARaiseIsAlwaysOne) {
  for_seeds(500, [](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "limits"));
    const auto any = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(1 + rng.below(most));
    };
    const WorkLimits limits{.sequences_max = any(512),
                            .held_max = rng.below(2) ? std::optional(any(512)) : std::nullopt,
                            .completions_per_prompt = any(32),
                            .prompts_per_step = any(256),
                            .lookahead = any(4) - 1,
                            .max_staleness = 4};
    const auto raise =
        more_sequences(limits, {.times = static_cast<double>(any(1000)) / 10, .rollouts = any(20)});
    if (!raise) return;
    EXPECT_GT(raise->raised, raise->now);
    EXPECT_EQ(raise->raised % limits.completions_per_prompt, 0);
  });
}

}  // namespace
}  // namespace tandem::scheduler
