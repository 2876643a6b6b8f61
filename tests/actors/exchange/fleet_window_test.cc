#include "actors/exchange/fleet_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;
using messages::RolloutStats;

// A learner and rollouts that are always at work: each rollout reports once a second, and each step
// takes a second.
class Fleet {
 public:
  FleetWindow window;
  Time now{};

  void report(const std::string& rollout, std::uint64_t tokens, double busy_seconds,
              Duration time = 1s) {
    RolloutStats& told = told_[rollout];
    const RolloutStats before = told;
    told.generation_tokens += tokens;
    told.busy_seconds += busy_seconds;
    window.worked(rollout, before, told, time);
  }
  void start_again(const std::string& rollout) { told_.erase(rollout); }
  void step(Duration idle = 0s, Duration at_work = 1s, std::uint64_t tokens = 100) {
    now = now + idle + at_work;
    window.trained(at_work);
    window.committed(tokens, 8, now);
  }

 private:
  std::map<std::string, RolloutStats> told_;
};

TEST(FleetWindow, HasRatesOnceTwoStepsAreCommitted) {
  Fleet fleet;
  EXPECT_FALSE(fleet.window.rates());
  fleet.report("r/0", 500, 1);  // before the first commit: of no window
  fleet.step(3s);
  EXPECT_FALSE(fleet.window.rates()) << "one point";
  fleet.report("r/0", 80, 0.8, 1s);
  fleet.report("r/0", 40, 0.2, 1s);
  fleet.window.installed("r/0", 0.25, 1000);
  fleet.window.installed("r/0", 0.75, 5000);
  fleet.window.wasted(20);
  fleet.step(1s);
  const auto rates = fleet.window.rates();
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->steps, 1);
  EXPECT_DOUBLE_EQ(rates->seconds, 2);
  ASSERT_EQ(rates->rollouts.size(), 1u);
  EXPECT_EQ(rates->rollouts[0].actor, "r/0");
  EXPECT_DOUBLE_EQ(rates->rollouts[0].tokens_per_s, 120);
  EXPECT_DOUBLE_EQ(rates->rollouts[0].busy_fraction, 0.5);
  EXPECT_DOUBLE_EQ(rates->rollouts[0].install_fraction, 0.5);
  EXPECT_DOUBLE_EQ(rates->step_seconds, 1);
  EXPECT_DOUBLE_EQ(rates->step_tokens, 100);
  EXPECT_DOUBLE_EQ(rates->completions_per_step, 8);
  EXPECT_DOUBLE_EQ(rates->generated_per_trained, 1.2);
  EXPECT_DOUBLE_EQ(rates->install_seconds, 0.5);
  EXPECT_DOUBLE_EQ(rates->install_bytes, 3000);
  EXPECT_FALSE(rates->prefix_hit_ratio);
  EXPECT_DOUBLE_EQ(rates->trainer_idle_fraction, 0.5);
  EXPECT_DOUBLE_EQ(rates->rollout_idle_fraction, 0.5);
}

TEST(FleetWindow, AShortWindowHasNoRates) {
  Fleet fleet;
  fleet.step(0s, 1ms);
  fleet.step(0s, 1ms);
  EXPECT_FALSE(fleet.window.rates());
  fleet.step(0s, 998ms);
  EXPECT_FALSE(fleet.window.rates());
  fleet.step(0s, 1ms);
  ASSERT_TRUE(fleet.window.rates());
  EXPECT_EQ(fleet.window.rates()->steps, 3);
}

// Where no rollout has reported there is a learner's side, and no rollout's.
TEST(FleetWindow, WithoutReportsNoRolloutIsListed) {
  Fleet fleet;
  fleet.step();
  fleet.step();
  const auto rates = fleet.window.rates();
  ASSERT_TRUE(rates);
  EXPECT_TRUE(rates->rollouts.empty());
  EXPECT_EQ(rates->rollout_idle_fraction, 0);
  EXPECT_EQ(rates->generated_per_trained, 1);
}

TEST(FleetWindow, ARolloutThatGeneratedNothingIsNotListedAndIsIdle) {
  Fleet fleet;
  fleet.step();
  fleet.report("r/0", 100, 1);
  fleet.report("r/1", 0, 0);
  fleet.report("r/2", 10, 0.1, 100ms);  // it has just come up
  fleet.step();
  const auto rates = fleet.window.rates();
  ASSERT_EQ(rates->rollouts.size(), 1u);
  EXPECT_EQ(rates->rollouts[0].actor, "r/0");
  EXPECT_NEAR(rates->rollout_idle_fraction, 1 - 1.1 / 2.1, 1e-12);
}

TEST(FleetWindow, MW1AnIncarnationThatStartsAgainCountsOn) {
  Fleet fleet;
  fleet.report("r/0", 5000, 50);
  fleet.step();
  fleet.report("r/0", 100, 1);
  fleet.window.ended("r/0", RolloutEnd::kDied);
  fleet.start_again("r/0");
  fleet.report("r/0", 200, 1);
  fleet.step();
  const auto rates = fleet.window.rates();
  ASSERT_EQ(rates->rollouts.size(), 1u);
  EXPECT_DOUBLE_EQ(rates->rollouts[0].tokens_per_s, 150);
  EXPECT_EQ(rates->rollout_deaths, 1);
  // A peer whose counters go back is not believed.
  messages::RolloutStats before;
  before.generation_tokens = 50;
  before.busy_seconds = 9;
  fleet.window.worked("r/0", before, {}, 1s);
  fleet.step();
  EXPECT_DOUBLE_EQ(fleet.window.rates()->rollouts[0].tokens_per_s, 150);
}

TEST(FleetWindow, MW1SumsOfStepsThatShrinkAreLeftOut) {
  FleetWindow window;
  RolloutStats before, after;
  before.step_seconds.add(8, 0, 0.02);
  after = before;
  after.generation_tokens = 100;
  after.busy_seconds = 1;
  for (int i = 0; i < 5; ++i) after.step_seconds.add(16, 0, 0.04);  // 16 sequences at once
  window.committed(1, 1, Time{});
  window.worked("r/0", before, after, 1s);
  window.worked("r/0", after, before, 1s);  // what no honest engine tells
  window.delayed(FleetDelay::kScore, 250ms);
  window.delayed(FleetDelay::kScore, 750ms);
  window.committed(1, 1, Time{} + 2s);
  const auto rates = window.rates();
  ASSERT_TRUE(rates);
  EXPECT_NEAR(rates->engine.sequence_s, 0.04 / 16, 1e-9);
  EXPECT_NEAR(rates->engine.step_s, 0, 1e-9);
  EXPECT_DOUBLE_EQ(rates->rollouts.at(0).sequences, 16);
  EXPECT_DOUBLE_EQ(rates->score_seconds, 0.5);
  EXPECT_EQ(rates->fetch_seconds, 0);
}

TEST(FleetWindow, ARolloutThatHasGoneIsNotListed) {
  Fleet fleet;
  fleet.step();
  for (const char* rollout : {"r/0", "r/1"}) fleet.report(rollout, 100, 1);
  fleet.window.ended("r/1", RolloutEnd::kLeft);
  fleet.step();
  EXPECT_FALSE(fleet.window.rates()) << "the fleet has changed";
  fleet.report("r/0", 100, 1);
  fleet.step();
  const auto rates = fleet.window.rates();
  ASSERT_TRUE(rates);
  ASSERT_EQ(rates->rollouts.size(), 1u);
  EXPECT_EQ(rates->rollouts[0].actor, "r/0");
  EXPECT_EQ(rates->rollout_deaths, 0) << "it was drained";
}

// The steps before a change of the fleet are of another one.
TEST(FleetWindow, MW3AChangeOfTheFleetBeginsANewWindow) {
  Fleet fleet;
  const auto steps = [&](std::initializer_list<const char*> rollouts, int count) {
    for (int i = 0; i < count; ++i) {
      for (const char* const rollout : rollouts) fleet.report(rollout, 100, 1);
      fleet.step();
    }
  };
  fleet.window.came("r/0");
  steps({"r/0"}, 10);
  ASSERT_TRUE(fleet.window.rates());
  EXPECT_FALSE(fleet.window.rates()->since_resize) << "the run's own beginning";
  fleet.window.came("r/1");
  steps({"r/0", "r/1"}, 1);
  EXPECT_FALSE(fleet.window.rates()) << "the first step behind it ends none";
  steps({"r/0", "r/1"}, 3);
  const auto grown = fleet.window.rates();
  ASSERT_TRUE(grown);
  EXPECT_EQ(grown->steps, 3);
  EXPECT_TRUE(grown->since_resize);
  EXPECT_EQ(grown->rollouts.size(), 2u);

  // One that dies and comes back is no change: deaths are counted.
  fleet.window.ended("r/1", RolloutEnd::kDied);
  fleet.start_again("r/1");
  fleet.window.came("r/1");
  steps({"r/0", "r/1"}, 2);
  EXPECT_EQ(fleet.window.rates()->steps, 5);
  EXPECT_EQ(fleet.window.rates()->rollout_deaths, 1);
  fleet.window.leaves("r/9");
  steps({"r/0", "r/1"}, 1);
  EXPECT_EQ(fleet.window.rates()->steps, 6) << "it had never come";

  fleet.window.leaves("r/1");
  steps({"r/0", "r/1"}, 3);
  EXPECT_EQ(fleet.window.rates()->steps, 2) << "it drains";
  fleet.window.ended("r/1", RolloutEnd::kLeft);
  steps({"r/0"}, 3);
  EXPECT_EQ(fleet.window.rates()->steps, 2) << "it is gone";
  EXPECT_EQ(fleet.window.rates()->rollouts.size(), 1u);
  steps({"r/0"}, 40);
  EXPECT_FALSE(fleet.window.rates()->since_resize) << "the change is older than the window";
}

// Rollouts on machines that are taken back come and go for as long as the job runs.
TEST(FleetWindow, MW3ARolloutThatReturnsIsNoChangeOfTheFleet) {
  Fleet fleet;
  fleet.window.came("r/0");
  for (int i = 0; i < 40; ++i) {
    fleet.report("r/0", 100, 1);
    fleet.step();
    fleet.window.ended("r/0", RolloutEnd::kReturns);
    fleet.start_again("r/0");
    fleet.window.came("r/0");
  }
  fleet.report("r/0", 100, 1);
  fleet.step();
  EXPECT_TRUE(fleet.window.ends_window(32));
  ASSERT_TRUE(fleet.window.rates(32));
  EXPECT_EQ(fleet.window.rates(32)->steps, 32);
  EXPECT_EQ(fleet.window.rates(32)->rollout_deaths, 0);
  EXPECT_EQ(fleet.window.rates(32)->rollout_returns, 32);
  fleet.window.ended("r/0", RolloutEnd::kReturns);
  fleet.window.leaves("r/0");  // it was to return, and is not wanted any more
  fleet.step();
  EXPECT_FALSE(fleet.window.rates());
}

TEST(FleetWindow, MW3AWindowToWaitForBeginsAnewAsWell) {
  Fleet fleet;
  for (int i = 0; i < 30; ++i) fleet.step();
  fleet.window.came("r/1");
  for (int i = 0; i < 32; ++i) {
    fleet.step();
    EXPECT_FALSE(fleet.window.ends_window(32)) << i;
  }
  fleet.step();
  EXPECT_TRUE(fleet.window.ends_window(32));
  EXPECT_EQ(fleet.window.rates(32)->steps, 32);
}

// A learner that ends amid a step was at work; a step that is repeated is no new one.
TEST(FleetWindow, RepeatedStepsAreWorkAndNoSteps) {
  Fleet fleet;
  fleet.step();
  fleet.window.learner_ended(1s);
  fleet.window.trained(2s);  // repeated
  fleet.now = fleet.now + 4s;
  fleet.step();
  const auto rates = fleet.window.rates();
  EXPECT_EQ(rates->steps, 1);
  EXPECT_DOUBLE_EQ(rates->seconds, 5);
  EXPECT_DOUBLE_EQ(rates->step_seconds, 1.5);
  EXPECT_DOUBLE_EQ(rates->trainer_idle_fraction, 0.2);
}

TEST(FleetWindow, WaitsAreSummedForEachStepOfTheWindow) {
  using enum scheduler::TrainerWait;
  Fleet fleet;
  const auto of = [&](scheduler::TrainerWait wait) {
    const auto rates = fleet.window.rates();
    return rates ? rates->waits[static_cast<std::size_t>(wait)] : 0;
  };
  fleet.window.waits(kScores, fleet.now);
  fleet.step(5s);  // before the first commit: of no window
  EXPECT_EQ(of(kScores), 0);
  for (int i = 0; i < 4; ++i) {
    fleet.window.waits(kScores, fleet.now);
    fleet.window.waits(kWeights, fleet.now + 250ms);
    fleet.window.waits(kNone, fleet.now + 1s);
    fleet.step(1s, 2s);
  }
  EXPECT_DOUBLE_EQ(of(kScores), 0.25);
  EXPECT_DOUBLE_EQ(of(kWeights), 0.75);
  EXPECT_DOUBLE_EQ(of(kNone), 2);
  EXPECT_EQ(of(kCheckpoint), 0);
}

TEST(FleetWindow, AnEvaluationInsideTheWindowIsSeen) {
  Fleet fleet;
  fleet.step();
  EXPECT_EQ(fleet.window.evaluation_fraction(), 0) << "no window";
  fleet.window.evaluates(true, fleet.now);
  for (int i = 0; i < 6; ++i) fleet.step();
  EXPECT_DOUBLE_EQ(fleet.window.evaluation_fraction(32), 1) << "it goes on";
  fleet.window.evaluates(false, fleet.now);
  for (int i = 0; i < 18; ++i) fleet.step();
  EXPECT_DOUBLE_EQ(fleet.window.evaluation_fraction(32), 6.0 / 24);
  for (int i = 0; i < 8; ++i) fleet.step();
  EXPECT_DOUBLE_EQ(fleet.window.evaluation_fraction(32), 6.0 / 32);
  for (int i = 0; i < 6; ++i) fleet.step();
  EXPECT_EQ(fleet.window.evaluation_fraction(32), 0) << "before the window";
}

TEST(FleetWindow, WindowsFollowEachOther) {
  // Steps of 50 ms, 700 ms and 3 s.
  for (const Duration time : {Duration{50ms}, Duration{700ms}, Duration{3s}}) {
    SCOPED_TRACE(seconds(time));
    Fleet fleet;
    fleet.step(0s, time);
    Time before = fleet.now;
    int windows = 0;
    for (int step = 1; windows < 5; ++step) {
      ASSERT_LT(step, 10'000);
      EXPECT_FALSE(step == 1 && fleet.window.ends_window(32));
      fleet.step(0s, time);
      if (!fleet.window.ends_window(32)) continue;
      const auto rates = fleet.window.rates(32);
      ASSERT_TRUE(rates);
      EXPECT_GE(rates->steps, 32);
      EXPECT_GE(rates->seconds, seconds(kRateTime));
      EXPECT_NEAR(rates->seconds, seconds(fleet.now - before), 0.7) << "nothing is counted twice";
      before = fleet.now;
      ++windows;
    }
  }
}

TEST(FleetWindow, SlidesWithTheNewestSteps) {
  Fleet fleet;
  for (int i = 0; i < 100; ++i) fleet.step(1s, 1s);
  EXPECT_DOUBLE_EQ(fleet.window.rates()->trainer_idle_fraction, 0.5);
  EXPECT_EQ(fleet.window.rates()->steps, kRateStepsShown);
  EXPECT_EQ(fleet.window.rates(1000)->steps, kRateSteps) << "what is kept";
  EXPECT_EQ(fleet.window.rates(4)->steps, 10) << "those of kRateTime";
  for (int i = 0; i < 20; ++i) fleet.step(0s, 1s);
  EXPECT_DOUBLE_EQ(fleet.window.rates()->trainer_idle_fraction, 0);
}

TEST(FleetWindow, MW2PointsAreBoundedAndCoverAUsefulTime) {
  for_seeds(20, [](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "steps"));
    Fleet fleet;
    const std::uint64_t slowest = 1 + rng.below(seed % 2 == 0 ? 20 : 3000);
    for (int i = 0; i < 5000; ++i) {
      fleet.step(0s, std::chrono::milliseconds(1 + rng.below(slowest)));
      ASSERT_LE(fleet.window.points(), kRatePoints);
    }
    const auto rates = fleet.window.rates(kRateSteps);
    ASSERT_TRUE(rates);
    EXPECT_GE(rates->steps, kRateSteps);
    if (fleet.now - Time{} > 2 * kRateTime) {
      EXPECT_GE(rates->seconds, seconds(kRateTime));
    }
  });
}

// Names that come and go for ever leave nothing behind, and no rate goes wrong by it.
TEST(FleetWindow, MW1PlacesAreUsedAgain) {
  for_seeds(10, [](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "rollouts"));
    Fleet fleet;
    std::map<std::string, std::uint64_t> up;  // tokens per second
    for (std::uint64_t i = 0; i < 2000; ++i) {
      if (rng.below(3) == 0) up["r/" + std::to_string(i)] = 1 + rng.below(1000);
      while (up.size() > 5) {
        const auto gone = std::next(up.begin(), static_cast<std::ptrdiff_t>(rng.below(up.size())));
        fleet.window.ended(gone->first, static_cast<RolloutEnd>(rng.below(3)));
        up.erase(gone);
      }
      for (const auto& [rollout, tokens] : up) fleet.report(rollout, tokens, 1);
      fleet.step();
      const auto rates = fleet.window.rates();
      if (!rates) continue;
      EXPECT_TRUE(std::ranges::is_sorted(rates->rollouts, {}, &scheduler::RolloutRate::actor));
      for (const scheduler::RolloutRate& rollout : rates->rollouts) {
        ASSERT_TRUE(up.contains(rollout.actor));
        ASSERT_DOUBLE_EQ(rollout.tokens_per_s, static_cast<double>(up[rollout.actor]));
      }
      EXPECT_GE(rates->rollout_deaths, 0);
    }
    EXPECT_LT(fleet.window.places(), 200u) << "of some seven hundred names";
  });
}

}  // namespace
}  // namespace tandem::exchange
