// The budget of restarts over hours of virtual time: pauses, limits, the ladder from actor to role
// to job, and which failures are worth another start (RB-1 to RB-6).
#include "scheduler/fleet/restart_budget.h"

#include <gtest/gtest.h>

#include <deque>

namespace tandem::scheduler {
namespace {

using std::chrono::seconds;

constexpr RestartPolicy kPolicy{.intensity = 3,
                                .period = seconds(100),
                                .backoff_first = std::chrono::milliseconds(500),
                                .backoff_max = seconds(4),
                                .jitter = 0,
                                .healthy_after = seconds(60)};

Time death_at(std::int64_t s) { return Time{} + Duration(seconds(s)); }

TEST(RestartBudget, BacksOffExponentiallyThenGivesUp) {
  Rng rng(1);
  RestartBudget budget(kPolicy);
  for (const std::int64_t ms : {500, 1000, 2000}) {
    const auto next = budget.died({death_at(0), death_at(10)}, rng);
    EXPECT_EQ(std::get<Restart>(next).until, death_at(10) + std::chrono::milliseconds(ms));
  }
  EXPECT_EQ(std::get<Exhausted>(budget.died({death_at(0), death_at(10)}, rng)).restarts, 3);
  EXPECT_EQ(budget.restarts_total(), 3);
}

TEST(RestartBudget, TheBackoffIsCapped) {
  Rng rng(1);
  RestartPolicy policy = kPolicy;
  policy.intensity = 100;
  RestartBudget budget(policy);
  for (int i = 0; i < 20; ++i) budget.died({death_at(0), death_at(1)}, rng);
  EXPECT_EQ(std::get<Restart>(budget.died({death_at(0), death_at(1)}, rng)).until, death_at(5));
}

TEST(RestartBudget, AHealthyLifeStartsTheBackoffAnew) {  // RB-2
  Rng rng(1);
  RestartBudget budget(kPolicy);
  budget.died({death_at(0), death_at(1)}, rng);
  budget.died({death_at(2), death_at(3)}, rng);
  const auto next = budget.died({death_at(4), death_at(64)}, rng);
  EXPECT_EQ(std::get<Restart>(next).until, death_at(64) + std::chrono::milliseconds(500));
  EXPECT_EQ(std::get<Restart>(next).n, 3);
}

// Each start is so slow to fail that no period holds more than one.
TEST(RestartBudget, StartsThatNeverGetReadyEndHoweverSlowTheyAre) {  // RB-5
  Rng rng(1);
  RestartBudget budget(kPolicy);
  std::int64_t now = 0;
  const auto never_ready = [&] {
    now += 1000;
    return budget.died({death_at(now), death_at(now)}, rng);
  };
  const auto ready_for_a_second = [&] {
    now += 1000;
    return budget.died({death_at(now), death_at(now + 1)}, rng);
  };
  for (int i = 0; i < kPolicy.intensity; ++i)
    EXPECT_TRUE(std::holds_alternative<Restart>(never_ready())) << i;
  EXPECT_TRUE(std::holds_alternative<Restart>(ready_for_a_second()))
      << "failed starts before a healthy time do not count";
  for (int i = 0; i < kPolicy.intensity; ++i)
    EXPECT_TRUE(std::holds_alternative<Restart>(never_ready())) << i;
  const auto last = never_ready();
  ASSERT_TRUE(std::holds_alternative<Exhausted>(last));
  EXPECT_EQ(std::get<Exhausted>(last).restarts, kPolicy.intensity);
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(std::holds_alternative<Restart>(ready_for_a_second())) << "rare deaths never end";
}

TEST(RestartBudget, JitterStaysWithinItsShareAndDiffers) {
  Rng rng(7);
  RestartPolicy policy = kPolicy;
  policy.jitter = 0.2;
  std::int64_t least = INT64_MAX, most = 0;
  for (int i = 0; i < 1000; ++i) {
    RestartBudget budget(policy);
    const auto ns = std::get<Restart>(budget.died({death_at(0), death_at(0)}, rng)).until.ns;
    least = std::min(least, ns);
    most = std::max(most, ns);
  }
  EXPECT_GE(least, 400'000'000);
  EXPECT_LE(most, 600'000'000);
  EXPECT_LT(least, 420'000'000);
  EXPECT_GT(most, 580'000'000);
}

TEST(RestartBudgetProperty, NoPeriodHoldsMoreThanTheIntensity) {  // RB-1
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    RestartBudget budget(kPolicy);
    std::deque<Time> granted;
    Time now{};
    for (int i = 0; i < 100; ++i) {
      now = now + Duration(seconds(rng.below(60)));
      const bool restarts = budget.died({now, now + Duration(1)}, rng).index() == 0;
      std::erase_if(granted, [&](Time t) { return now - t >= kPolicy.period; });
      EXPECT_EQ(restarts, std::ssize(granted) < kPolicy.intensity) << "seed=" << seed;
      if (restarts) granted.push_back(now);
    }
  }
}

TEST(RestartLadder, EscalatesFromActorToRoleToJobWithTheRootCause) {  // RB-3
  Rng rng(1);
  RestartPolicy once = kPolicy;
  once.intensity = 1;
  RestartLadder ladder({.actor = once, .role = once});
  const auto dies = [&](const char* actor) {
    return ladder.died({actor, "rollout", "killed by SIGSEGV (11)", {death_at(0), death_at(1)}},
                       rng);
  };
  using L = RestartLadder;
  EXPECT_TRUE(std::holds_alternative<L::RestartActor>(dies("j/rollout/0")));
  EXPECT_TRUE(std::holds_alternative<L::RestartActor>(dies("j/rollout/1")));
  const auto role = dies("j/rollout/0");
  ASSERT_TRUE(std::holds_alternative<L::RestartRole>(role));
  EXPECT_EQ(std::get<L::RestartRole>(role).root_cause, "killed by SIGSEGV (11)");
  EXPECT_EQ(ladder.restarts_of("j/rollout/0"), 2);
  EXPECT_EQ(ladder.restarts_of("j/rollout/1"), 2);
  EXPECT_TRUE(std::holds_alternative<L::RestartActor>(dies("j/rollout/0")));  // a fresh budget
  const auto job = dies("j/rollout/0");
  ASSERT_TRUE(std::holds_alternative<L::FailJob>(job));
  EXPECT_EQ(std::get<L::FailJob>(job).root_cause, "killed by SIGSEGV (11)");
}

TEST(RestartLadder, AnActorThatNeverGetsReadyEndsItsJobHoweverSlowlyItFails) {  // RB-5
  Rng rng(1);
  RestartLadder ladder({.actor = kPolicy, .role = kPolicy});
  const int starts_max = (kPolicy.intensity + 1) * (kPolicy.intensity + 1);
  int starts = 1;
  for (std::int64_t now = 0;; now += 1000, ++starts) {
    ASSERT_LE(starts, starts_max);
    const auto decision = ladder.died(
        {"j/learner/0", "learner", "out of memory", {death_at(now), death_at(now)}}, rng);
    if (std::holds_alternative<RestartLadder::FailJob>(decision)) break;
  }
  EXPECT_EQ(starts, starts_max);
}

using L = RestartLadder;

L::Decision dies(RestartLadder& ladder, Rng& rng, std::int64_t s, bool memory_kill) {
  return ladder.died({.actor = "j/learner/0",
                      .role = "learner",
                      .cause = memory_kill ? "no memory" : "killed",
                      .uptime = {death_at(s - 1), death_at(s)},
                      .memory_kill = memory_kill},
                     rng);
}

TEST(RestartLadder, TheSecondProvenWantOfMemoryInARowEndsTheJob) {  // RB-6
  Rng rng(1);
  RestartLadder ladder({.actor = kPolicy, .role = kPolicy});
  EXPECT_TRUE(std::holds_alternative<L::RestartActor>(dies(ladder, rng, 1000, true)));
  const auto second = dies(ladder, rng, 9000, true);  // however long it lived
  ASSERT_TRUE(std::holds_alternative<L::FailJobForMemory>(second));
  EXPECT_EQ(std::get<L::FailJobForMemory>(second).root_cause, "no memory");
}

TEST(RestartLadder, ADiskThatCannotBeWrittenUsesUpNoRestart) {  // RB-7
  Rng rng(1);
  RestartLadder ladder({.actor = kPolicy, .role = kPolicy});
  const auto fails = [&](Time at, bool disk, Duration worked = {}) {
    return ladder.died({.actor = "j/learner/0",
                        .role = "learner",
                        .cause = "No space left on device",
                        .uptime = {Time{at.ns - worked.count()}, at},
                        .disk = disk},
                       rng);
  };
  for (const Time first : {death_at(1000), death_at(1'000'000)}) {
    Duration pause = kDiskPauseFirst;
    int tries = 0;
    Time now = first;
    for (; now < first + kDiskWaitMax; ++tries) {
      const auto next = fails(now, true);
      ASSERT_TRUE(std::holds_alternative<L::WaitForDisk>(next));
      EXPECT_EQ(std::get<L::WaitForDisk>(next).until, now + pause);
      EXPECT_EQ(std::get<L::WaitForDisk>(next).give_up, first + kDiskWaitMax);
      now = now + pause;
      pause = std::min(pause * 2, kDiskPauseMax);
    }
    EXPECT_GT(tries, 1000);
    EXPECT_TRUE(std::holds_alternative<L::RestartActor>(fails(now, true))) << "it counts now";
    EXPECT_TRUE(
        std::holds_alternative<L::RestartActor>(fails(now + kPolicy.period, false, kPolicy.period)))
        << "another cause begins the row anew";
  }
  EXPECT_EQ(ladder.restarts_of("j/learner/0"), 4);
  const Time later = death_at(10'000'000);
  (void)fails(later, true);
  ladder.ready("j/learner/0");
  const auto next = fails(later + kDiskWaitMax, true);
  ASSERT_TRUE(std::holds_alternative<L::WaitForDisk>(next)) << "a start that succeeds ends the row";
  EXPECT_EQ(std::get<L::WaitForDisk>(next).until, later + kDiskWaitMax + kDiskPauseFirst);
}

TEST(RestartLadder, OtherDeathsBetweenThemStartTheRowAnew) {  // RB-6
  Rng rng(1);
  RestartLadder ladder({.actor = kPolicy, .role = kPolicy});
  bool memory = true;
  for (std::int64_t s = 1000; s < 20'000; s += 1000, memory = !memory)
    EXPECT_TRUE(std::holds_alternative<L::RestartActor>(dies(ladder, rng, s, memory))) << s;
  EXPECT_TRUE(std::holds_alternative<L::RestartActor>(dies(ladder, rng, 20'000, false)));
  EXPECT_TRUE(std::holds_alternative<L::RestartActor>(dies(ladder, rng, 21'000, false)));
}

TEST(RestartLadder, KeepsTheDeathsThatFollowEachOther) {  // CL-1
  Rng rng(1);
  RestartLadder ladder({.actor = kPolicy, .role = kPolicy});
  EXPECT_EQ(ladder.loop_of("j/learner/0").deaths, 0);
  for (const std::int64_t s : {100, 110, 120}) dies(ladder, rng, s, false);
  const CrashLoop loop = ladder.loop_of("j/learner/0");
  EXPECT_EQ(loop.deaths, 3);
  EXPECT_EQ(loop.since, death_at(100));
  EXPECT_EQ(loop.cause, "killed");
  ladder.died(
      {"j/learner/0", "learner", "late", {death_at(130), death_at(130) + kPolicy.healthy_after}},
      rng);
  EXPECT_EQ(ladder.loop_of("j/learner/0").deaths, 1);
  EXPECT_EQ(ladder.loop_of("j/learner/0").cause, "late");
}

TEST(RestartBudget, OnlyTheInputIsPermanent) {  // RB-4
  for (const ErrorCode code : {ErrorCode::kFailed, ErrorCode::kTimedOut, ErrorCode::kUnreachable,
                               ErrorCode::kUnauthorised}) {
    EXPECT_EQ(class_of(code), FailureClass::kMendable) << name(code);
    for (const bool was_ready : {false, true})
      EXPECT_TRUE(worth_another_start(code, was_ready)) << name(code);
  }
  for (const ErrorCode code : {ErrorCode::kInvalid, ErrorCode::kInfeasible, ErrorCode::kNotFound}) {
    EXPECT_EQ(class_of(code), FailureClass::kInput) << name(code);
    for (const bool was_ready : {false, true})
      EXPECT_FALSE(worth_another_start(code, was_ready)) << name(code);
  }
}

TEST(RestartBudget, AWantOfMemoryIsWorthAnotherStartOnlyOfWhoHasWorked) {  // RB-4
  EXPECT_EQ(class_of(ErrorCode::kOutOfMemory), FailureClass::kMemory);
  EXPECT_TRUE(worth_another_start(ErrorCode::kOutOfMemory, true));
  EXPECT_FALSE(worth_another_start(ErrorCode::kOutOfMemory, false));
}

}  // namespace
}  // namespace tandem::scheduler
